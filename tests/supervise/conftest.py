import pytest

from tests.supervise.harness import Harness


@pytest.fixture
def harness(tmp_path):
    made = Harness(tmp_path)
    yield made
    made.end()
