"""Includes that break the table of floors are found."""
import floors
from planted import PlantedTest


class FloorsTest(PlantedTest):
    def test_an_include_that_points_up_is_found(self):
        found = self.found_with_table(floors.check, {"common/base/a.h": '#include "common/net/b.h"\n', "common/net/b.h": ""})
        self.assert_found("common/base/a.h:1: error: common/base (floor 0) includes", found)

    def test_an_include_of_a_sibling_is_found(self):
        found = self.found_with_table(floors.check, {"common/net/b.h": '#include "common/tensor/s.h"\n', "common/tensor/s.h": ""})
        self.assert_found("common/net/b.h:1: error", found)

    def test_a_third_party_out_of_place_is_found(self):
        found = self.found_with_table(floors.check, {"common/tensor/s.h": "#include <boost/asio.hpp>\n"})
        self.assert_found("may not use Asio", found)
