from collections.abc import Iterable
from xml.etree.ElementTree import Element

class TestCase:
    def __init__(
        self,
        name: str,
        classname: str | None = None,
        elapsed_sec: float | None = None,
        *,
        timestamp: str | None = None,
        file: str | None = None,
        line: int | None = None,
    ) -> None: ...
    def add_error_info(
        self, message: str | None = None, output: str | None = None, error_type: str | None = None
    ) -> None: ...
    def add_failure_info(
        self, message: str | None = None, output: str | None = None, failure_type: str | None = None
    ) -> None: ...
    def add_skipped_info(self, message: str | None = None, output: str | None = None) -> None: ...

class TestSuite:
    def __init__(
        self,
        name: str,
        test_cases: Iterable[TestCase] | None = None,
        hostname: str | None = None,
        id: str | int | None = None,  # noqa: A002 - the library's name
        package: str | None = None,
        timestamp: str | None = None,
    ) -> None: ...
    def build_xml_doc(self, encoding: str | None = None) -> Element: ...
