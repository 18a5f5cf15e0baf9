package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/testreq"
)

const table = "# Soak\n\n| part | proves | needs | took | last run | commit | result |\n|---|---|---|---|---|---|---|\n" +
	"| `one` | a | b | not measured | – | – | not run |\n| `two` | c | d | not measured | – | – | not run |\n\nThe end.\n"

// TestRecords runs parts that end in each way, and looks at their rows.
func TestRecords(t *testing.T) {
	for _, c := range []struct {
		script string
		limit  time.Duration
		ok     bool
		want   string
	}{
		{"echo '--- PASS: TestA (0.00s)'; echo '    --- PASS: TestA/x (0.00s)'; echo \"require $BRAGG_TEST_REQUIRE\"", time.Minute, true, "passed: 2 tests"},
		{"echo '--- PASS: TestA (0.00s)'; echo '--- SKIP: TestB (0.00s)'", time.Minute, true, "passed: 1 tests, 1 skipped"},
		{"echo '--- SKIP: TestB (0.00s)'", time.Minute, false, "did not run: 1 skipped"},
		{"echo '--- FAIL: TestB (0.00s)'; exit 1", time.Minute, false, `FAILED: 0 passed, 1 failed \(TestB\)`},
		{"echo '--- PASS: TestA (0.00s)'; exit 2", time.Minute, false, "FAILED outside of a test: 1 passed"},
		{"echo '--- PASS: TestA (0.00s)'; sleep 1000 & sleep 1000", 300 * time.Millisecond, false, "STOPPED at its limit of 300ms: [01] passed, 0 failed"},
	} {
		page := filepath.Join(t.TempDir(), "soak.md")
		if err := os.WriteFile(page, []byte(table), 0o644); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		ok, err := soak(t.Context(), &out, page, "two", c.limit, split([]string{"sh", "-c", c.script}))
		if err != nil || ok != c.ok {
			t.Errorf("%s: %v, %v", c.script, ok, err)
		}
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		want := "(?m)^\\| `two` \\| c \\| d \\| \\d+s \\| \\d{4}-\\d\\d-\\d\\d \\| unknown \\| " + c.want + " \\|$"
		if !regexp.MustCompile(want).Match(text) || !strings.Contains(string(text), "| `one` | a | b | not measured | – | – | not run |\n") ||
			!strings.HasSuffix(string(text), "\n\nThe end.\n") {
			t.Errorf("%s: want %s in\n%s", c.script, want, text)
		}
		if strings.Contains(c.script, "require") && !strings.Contains(out.String(), "require all") {
			t.Errorf("the command's output: %s", out.String())
		}
	}
}

func TestNotRecorded(t *testing.T) {
	page := filepath.Join(t.TempDir(), "soak.md")
	if err := os.WriteFile(page, []byte(table), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := soak(t.Context(), &bytes.Buffer{}, page, "three", time.Minute, [][]string{{"false"}}); err == nil || !strings.Contains(err.Error(), `"three"`) {
		t.Errorf("a part without a row: %v", err)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	if _, err := soak(ctx, &bytes.Buffer{}, page, "one", time.Minute, [][]string{{"sleep", "1000"}}); err == nil || !strings.Contains(err.Error(), "interrupted") {
		t.Errorf("an interrupted part: %v", err)
	}
	if text, err := os.ReadFile(page); err != nil || string(text) != table {
		t.Errorf("%v, %s", err, text)
	}
}

// TestCommit: a change of the page itself does not make a commit dirty, since parts write into it one after the other.
func TestCommit(t *testing.T) {
	testreq.Program(t, "git")
	dir := t.TempDir()
	page, other := filepath.Join(dir, "docs", "soak.md"), filepath.Join(dir, "other")
	if err := os.Mkdir(filepath.Dir(page), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{page, other} {
		if err := os.WriteFile(name, []byte(table), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "-A"}, {"-c", "user.name=t", "-c", "user.email=t@example.test", "commit", "-qm", "begin"}} {
		if out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	for _, c := range []struct{ change, want string }{{page, `^[0-9a-f]{8}$`}, {other, `^[0-9a-f]{8}\.dirty$`}} {
		if err := os.WriteFile(c.change, []byte("changed"), 0o644); err != nil {
			t.Fatal(err)
		}
		if got := commitOf(page); !regexp.MustCompile(c.want).MatchString(got) {
			t.Errorf("after a change of %s the commit is %q, want %s", c.change, got, c.want)
		}
	}
}

// TestPartsHaveRows compares the parts of the Makefile with the table of the documentation.
func TestPartsHaveRows(t *testing.T) {
	root := testreq.RepositoryRoot(t)
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "soak.md"))
	if err != nil {
		t.Fatal(err)
	}
	var goals, listed, rows []string
	for _, m := range regexp.MustCompile(`(?m)^soak-(\S+):`).FindAllStringSubmatch(string(makefile), -1) {
		goals = append(goals, m[1])
	}
	for _, m := range regexp.MustCompile(`(?m)^SOAK_(?:PARTS|OWN) +:= (.*)$`).FindAllStringSubmatch(string(makefile), -1) {
		listed = append(listed, strings.Fields(m[1])...)
	}
	for line := range strings.Lines(string(page)) {
		if list := cells(line); len(list) == columnCount && strings.HasPrefix(list[columnPart], "`") {
			rows = append(rows, strings.Trim(list[columnPart], "`"))
		}
	}
	for _, list := range [][]string{goals, listed, rows} {
		slices.Sort(list)
	}
	if !slices.Equal(goals, rows) || !slices.Equal(listed, rows) || len(rows) == 0 {
		t.Errorf("goals of the Makefile %q, SOAK_PARTS and SOAK_OWN %q, rows of docs/soak.md %q", goals, listed, rows)
	}
}
