"""What the tests of many sweeps share."""

import pytest
from synthetic import Truth, write_sweep


@pytest.fixture(scope="session")  # s3fs keeps its connections, with the server's address, as long as the process lasts
def bucket():
    """(client, settings) of an S3-compatible server of this machine, with an empty bucket named bucket."""
    import boto3
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    settings = {"AWS_ACCESS_KEY_ID": "made", "AWS_SECRET_ACCESS_KEY": "up", "AWS_DEFAULT_REGION": "us-east-1",
                "AWS_ENDPOINT_URL": f"http://{host}:{port}", "NO_PROXY": "127.0.0.1"}  # fmt: skip
    client = boto3.client(
        "s3", endpoint_url=settings["AWS_ENDPOINT_URL"], aws_access_key_id="made", aws_secret_access_key="up",
        region_name="us-east-1")  # fmt: skip
    client.create_bucket(Bucket="bucket")
    yield client, settings
    server.stop()


@pytest.fixture(scope="module")
def raw(request, made_once):
    """Raw results of the module's SWEEPS, one short trial each."""
    truth = Truth({"web": 0.0002, "app": 0.0005, "middleware": 0.0004, "db": 0.01})

    def make(folder):
        for sweep in request.module.SWEEPS:
            write_sweep(folder, truth, [300], phases=(2.0, 4.0, 1.0), sweep=sweep)

    return made_once(f"raw_{request.module.__name__}", make)
