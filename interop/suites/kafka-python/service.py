"""Stands in for a helper that kafka-python's source distribution lacks: what its
tests know of a broker that runs already. They stay as they are."""


class ExternalService:
    def __init__(self, host, port):
        self.host = host
        self.port = port

    def open(self):
        pass

    def close(self):
        pass

    def stop(self):
        pass


class SpawnedService:
    """Never used: the broker is an external one."""
