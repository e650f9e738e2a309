"""One GET request to a FastCGI server, as PHP-FPM's status page takes it (record types of the specification)."""

import socket
import struct

BEGIN, PARAMS, STDIN, STDOUT, END = 1, 4, 5, 6, 3
RESPONDER = struct.pack("!HB5x", 1, 0)


def record(kind: int, content: bytes) -> bytes:
    return struct.pack("!BBHHBx", 1, kind, 1, len(content), 0) + content


def get(host: str, port: int, path: str, query: str = "", timeout_s: float = 10) -> str:
    """The answer's body. Raises OSError if there is none."""
    names = {"SCRIPT_NAME": path, "SCRIPT_FILENAME": path, "REQUEST_METHOD": "GET", "QUERY_STRING": query}
    pairs = b"".join(bytes([len(k), len(v)]) + k.encode() + v.encode() for k, v in names.items())
    with socket.create_connection((host, port), timeout_s) as connection, connection.makefile("rb") as answer:
        connection.sendall(record(BEGIN, RESPONDER) + record(PARAMS, pairs) + record(PARAMS, b"") + record(STDIN, b""))
        text = b""
        while True:
            head = answer.read(8)
            if len(head) < 8:
                raise OSError(f"{host}:{port} closed the connection")
            _, kind, _, length, padding = struct.unpack("!BBHHBx", head)
            content = answer.read(length + padding)[:length]
            if kind == STDOUT:
                text += content
            elif kind == END:
                return text.decode("ascii", "replace").partition("\r\n\r\n")[2]
