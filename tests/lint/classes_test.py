"""Classes above the limits, and entries of the list that are too high, are found."""
import classes
from planted import PlantedTest


def a_class(name, public=0, private=0, members=0, key="class"):
    lines = [f"{key} {name} {{", " public:", f"  {name}();", f"  explicit {name}(int a);", f"  ~{name}();",
             f"  bool operator==(const {name}&) const = default;", f"  static {name} parsed(int a);"]
    lines = lines[:6] if public else lines
    lines += [f"  void method(int a{i}, std::vector<int> b = {{}}) const {{ if (a{i}) {{ return; }} }}" for i in range(public)]
    lines += [] if key == "struct" else [" private:"]
    lines += ["  static constexpr int kLimit = 3;"]
    lines += [f"  int own{i}() DTF_REQUIRES(mutex_);" for i in range(private)]
    lines += [f"  std::map<int, int> member{i}_ DTF_GUARDED_BY(mutex_);" for i in range(members)]
    return "\n".join(["namespace dtf {", *lines, "};", "}"]) + "\n"


class ClassesTest(PlantedTest):
    def problems(self, text, listed=()):
        return self.found(classes.check, {"common/base/a.h": text}, dict(listed))

    def test_a_class_within_the_limits_passes(self):
        self.assertEqual(self.problems(a_class("A", public=30, private=10, members=20)), [])

    def test_too_many_public_methods_are_found_and_overloads_count(self):
        found = self.problems(a_class("A", public=31))
        self.assertEqual(found, ["common/base/a.h:2: error: dtf::A has 31 public methods, 30 at most: split the interface"])

    def test_too_many_methods_in_all_are_found(self):
        self.assert_found("dtf::A has 41 methods, 40 at most", self.problems(a_class("A", public=30, private=11)))

    def test_too_many_members_are_found(self):
        self.assert_found("dtf::A has 21 data members, 20 at most", self.problems(a_class("A", members=21)))

    def test_a_struct_of_settings_may_have_many_members_but_not_when_it_acts(self):
        self.assertEqual(self.problems(a_class("A", members=25, key="struct")), [])
        self.assert_found("25 data members", self.problems(a_class("A", public=1, members=25, key="struct")))

    def test_classes_within_classes_count_for_themselves(self):
        inner = "".join(f"    int m{i};\n" for i in range(15))
        text = f"class A {{\n  class B {{\n{inner}  }};\n{inner}}};\n"
        self.assertEqual(self.problems(text), [])

    def test_a_listed_class_may_not_grow(self):
        listed = {"dtf::A": {"data members": 22}}
        self.assertEqual(self.problems(a_class("A", members=22), listed), [])
        self.assert_found("23 data members, 22 at most", self.problems(a_class("A", members=23), listed))

    def test_a_listed_class_that_shrank_has_its_number_lowered_or_comes_off_the_list(self):
        listed = {"dtf::A": {"data members": 23}}
        self.assert_found("lower the number in the list from 23", self.problems(a_class("A", members=22), listed))
        self.assert_found("take it off the list", self.problems(a_class("A", members=20), listed))
        self.assert_found("or gone: take it off the list", self.problems(a_class("B"), listed))
