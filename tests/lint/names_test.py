"""Names without an include of their declaration are found."""
import names
from planted import PlantedTest


class NamesTest(PlantedTest):
    def test_what_is_included_directly_or_through_others_is_there(self):
        self.assertEqual(self.found(names.check, {
            "common/base/a.h": "#include <map>\nstruct Apple {};\n#define DTF_CHECK(x)\n",
            "common/base/b.h": '#include "a.h"\nstd::map<int, Apple> f() { DTF_CHECK(1); }  // std::vector, Basket\n',
            "common/base/c.h": "class Basket {};\nusing Own = int;\nOwn i;\n",
            "common/base/d.h": "class Basket;\nclass Box { Basket& basket; Rpc::Apple a; const char* s = \"Own\"; };\n",
        }), [])

    def test_a_name_whose_header_is_gone_is_found(self):
        found = self.found(names.check, {
            "common/base/a.h": "struct Apple {};\n#define DTF_CHECK(x)\n",
            "common/base/b.h": "std::vector<Apple> f() { DTF_CHECK(1); }\nkj::Promise<void> g();\n",
        })
        for text in ("uses std::vector and doesn't include <vector>", "uses Apple and doesn't include common/base/a.h",
                     "uses DTF_CHECK and", "uses kj:: and doesn't include a header of kj"):
            self.assert_found(text, found)

    def test_a_name_is_looked_for_behind_a_namespace_but_not_behind_a_type(self):
        files = {"common/base/a.h": "namespace ps { struct Builder {}; }\n",
                 "common/base/b.h": "Rpc::Builder a; List<Rpc>::Builder b; kj::Builder c;\n#include <kj/async.h>\n"}
        self.assertEqual(self.found(names.check, files), [])
        files["common/base/b.h"] = "void f(ps::Builder& builder, uint32_t i);\n"
        found = self.found(names.check, files)
        self.assert_found("uses Builder and doesn't include common/base/a.h", found)
        self.assert_found("uses uint32_t and doesn't include <cstdint>", found)

    def test_a_namespace_of_others_may_be_declared_forward(self):
        text = "namespace boost::asio {\nclass io_context;\n}\nvoid f(boost::asio::io_context& context);\n"
        self.assertEqual(self.found(names.check, {"common/base/a.h": text}), [])
