from tests.interop.conftest import java, new_table

__all__ = ["java", "new_table"]
