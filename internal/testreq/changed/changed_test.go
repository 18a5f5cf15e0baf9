package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/testreq"
)

// repository has a package of each kind of dependency.
var repository = map[string]string{
	"go.mod":                         "module example.test/m\n\ngo 1.26\n",
	"Makefile":                       "all:\n",
	"README.md":                      "m\n",
	"docs/guides/a.md":               "a\n",
	"a/a.go":                         "package a\n\nconst A = 1\n",
	"a/a_test.go":                    "package a\n",
	"a/testdata/x.txt":               "x\n",
	"b/b.go":                         "package b\n\nimport \"example.test/m/a\"\n\nconst B = a.A\n",
	"b/b_test.go":                    "package b\n",
	"c/c_test.go":                    "package c\n\nimport _ \"example.test/m/b\"\n", // depends on a by its tests alone
	"d/d.go":                         "package d\n",
	"d/d_test.go":                    "package d\n\nimport (\n\t\"os\"\n\t\"path/filepath\"\n)\n\nvar _, _ = os.ReadFile(filepath.Join(\"..\", \"a\", \"testdata\", \"x.txt\"))\n",
	"scenarios/scenarios.go":         "package scenarios\n\nimport \"embed\"\n\n//go:embed */*.yml\nvar FS embed.FS\n",
	"scenarios/one/test.yml":         "one\n",
	"scenarios/two/test.yml":         "two\n",
	"e/e_test.go":                    "package e\n\nimport _ \"example.test/m/scenarios\"\n",
	"f/f_test.go":                    "package f\n\nconst page = \"docs/guides/a.md\"\n",
	"rig/rig.go":                     "package rig\n\nimport (\n\t\"os/exec\"\n\t\"testing\"\n)\n\nfunc Build(*testing.T) { exec.Command(\"go\", \"build\", \"example.test/m/cmd/p\") }\n",
	"g/g_test.go":                    "package g\n\nimport _ \"example.test/m/rig\"\n",
	"h/h_test.go":                    "package h\n\nimport \"os/exec\"\n\nvar _ = exec.Command(\"make\", \"dist\")\n",
	"cmd/p/main.go":                  "package main\n\nimport _ \"example.test/m/b\"\n\nfunc main() {}\n",
	"windows/w_windows.go":           "package windows\n",
	"windows/w_test.go":              "package windows\n",
	"internal/archtest/arch_test.go": "package archtest\n",
}

// TestChanged makes one change after the other in a repository of git, committed or not.
func TestChanged(t *testing.T) {
	testreq.Program(t, "git")
	root := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(root, filepath.FromSlash(name))
		if text == "" {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			return
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	run := func(args ...string) {
		t.Helper()
		command := exec.Command("git", append([]string{"-c", "user.name=t", "-c", "user.email=t@example.test"}, args...)...)
		command.Dir = root
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v: %s", args, err, out)
		}
	}
	for name, text := range repository {
		write(name, text)
	}
	run("init", "-q", "-b", "main")
	run("add", "-A")
	run("commit", "-q", "-m", "begin")
	for _, c := range []struct {
		name     string
		change   func()
		want     string
		programs string // in addition, with -programs
		unknown  string
	}{
		{"nothing", func() {}, "", "", ""},
		{"code", func() { write("a/a.go", "package a\n\nconst A = 2\n") }, "a b c internal/archtest", "g", ""},
		{"code of a branch", func() { write("a/a.go", "package a\n\nconst A = 2\n"); run("commit", "-qam", "x") }, "a b c internal/archtest", "g", ""},
		{"a new file", func() { write("b/new.go", "package b\n") }, "b c internal/archtest", "g", ""},
		{"a removed file", func() { write("a/a_test.go", ""); write("a/new_test.go", "package a\n") }, "a internal/archtest", "", ""},
		{"a test", func() { write("b/b_test.go", "package b\n\nvar x int\n") }, "b internal/archtest", "", ""},
		{"testdata, which another test reads", func() { write("a/testdata/x.txt", "y\n") }, "a d internal/archtest", "", ""},
		{"a scenario", func() { write("scenarios/one/test.yml", "1\n") }, "e internal/archtest", "", ""},
		{"a removed scenario", func() { write("scenarios/one/test.yml", "") }, "e internal/archtest", "", ""},
		{"a page that a test names", func() { write("docs/guides/a.md", "b\n") }, "f internal/archtest", "", ""},
		{"a page that no test names", func() { write("README.md", "b\n") }, "internal/archtest", "", "README.md"},
		{"the Makefile", func() { write("Makefile", "b:\n") }, "h internal/archtest", "", ""},
		{"a file of another platform", func() { write("windows/w_windows.go", "package windows\n\n//\n") }, "windows internal/archtest", "", ""},
		{"a program", func() { write("cmd/p/main.go", "package main\n\nfunc main() {}\n") }, "internal/archtest", "g", ""},
		{"the module", func() { write("go.mod", "module example.test/m\n\ngo 1.26.0\n") }, "a b c d e f g h internal/archtest windows", "", ""},
	} {
		run("checkout", "-q", "-B", "work", "main")
		c.change()
		s, err := choose(root, "")
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		names := func(programs bool) (list []string) {
			for _, name := range s.packages(programs) {
				list = append(list, strings.TrimPrefix(name, "example.test/m/"))
			}
			return list
		}
		want := strings.Fields(c.want)
		if got := names(false); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
			t.Errorf("%s: %q, want %q", c.name, got, want)
		}
		want = append(want, strings.Fields(c.programs)...)
		if got := names(true); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
			t.Errorf("%s, with programs: %q, want %q", c.name, got, want)
		}
		if got := strings.Join(s.unknown, " "); got != c.unknown {
			t.Errorf("%s: not known: %q, want %q", c.name, got, c.unknown)
		}
		run("reset", "-q", "--hard")
		run("clean", "-qfd")
	}
	if _, err := choose(root, "no-such-commit"); err == nil {
		t.Error("a base that is not there was accepted")
	}
}
