"""GET /visit/N counts a visit of page N, GET /read/N says how many there were."""

import json
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from psycopg_pool import ConnectionPool

told = json.loads(Path(sys.argv[1]).read_text())
pool = ConnectionPool(told["database"], min_size=told["pool_size"], max_size=told["pool_size"], timeout=60)
with pool.connection() as first:
    first.execute("CREATE TABLE IF NOT EXISTS pages AS SELECT generate_series(1, 100) AS page, 0 AS visits")
SQL = {
    "visit": "UPDATE pages SET visits = visits + 1 WHERE page = %s RETURNING visits",
    "read": "SELECT visits FROM pages WHERE page = %s",
}


computing = threading.Lock()


class Page(BaseHTTPRequestHandler):
    def do_GET(self):
        _, action, page = self.path.split("/")
        with pool.connection() as connection:
            visits = connection.execute(SQL[action], [int(page)]).fetchone()[0]
            connection.execute("SELECT pg_sleep(%s)", [told["hold_ms"] / 1000])
        with computing:
            end = time.thread_time() + told["cpu_ms"] / 1000
            while time.thread_time() < end:
                pass
        body = f"page {page}: {visits} visits\n".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def status():
    with Path("/run/toy_status.csv").open("w", buffering=1) as file:
        file.write("t_s,connections_used,connections_limit,connections_waiting\n")
        while True:
            now = pool.get_stats()
            used, waiting = now["pool_size"] - now["pool_available"], now.get("requests_waiting", 0)
            file.write(f"{time.time():.3f},{used},{now['pool_max']},{waiting}\n")
            time.sleep(1 - time.time() % 1)


threading.Thread(target=status, daemon=True).start()
ThreadingHTTPServer.request_queue_size = 1000
ThreadingHTTPServer(("127.0.0.1", 8000), Page).serve_forever()
