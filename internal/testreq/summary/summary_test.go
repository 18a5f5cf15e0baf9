package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/testreq"
)

// TestProgress runs real packages in two parts, as make test does: a first time, and a second that knows the first.
func TestProgress(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":         "module example.test/m\n\ngo 1.26\n",
		"a/a_test.go":    "package a\n\nimport \"testing\"\n\nfunc TestA(t *testing.T) {}\n",
		"b/b_test.go":    "package b\n\nimport \"testing\"\n\nfunc TestB(t *testing.T) { t.Skip(\"no part\") }\n\nfunc TestLong(t *testing.T) { t.Skip(\"" + testreq.SoakOnly + "an hour\") }\n",
		"c/d/d_test.go":  "package d\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\nfunc TestD(t *testing.T) {\n\tif os.Getenv(\"FAIL_D\") != \"\" {\n\t\tt.Fatal(\"asked to\")\n\t}\n}\n",
		"c/nothing/n.go": "package nothing\n",
	} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	t.Setenv("GOFLAGS", "-mod=mod")
	times := filepath.Join(dir, "build", "times.json")
	parts, ok := split([]string{"--", "go", "test", "-vet=off", "-p", "1", "./a", "./b", "--", "go", "test", "-p", "2", "./c/..."})
	if !ok || len(parts) != 2 {
		t.Fatalf("the parts are %q", parts)
	}
	check := func(wantCode int, wants ...string) {
		t.Helper()
		var out bytes.Buffer
		code, err := run(&out, times, parts)
		if err != nil || code != wantCode {
			t.Errorf("exit code %d, %v", code, err)
		}
		for _, want := range wants {
			if !regexp.MustCompile(want).MatchString(out.String()) {
				t.Errorf("the output lacks %q:\n%s", want, out.String())
			}
		}
	}
	check(0, `^4 packages\. It takes long`, `make test-fast`, `(?m)^\[1/4  \d+:\d\d\]  ok `, `(?m)^\[4/4  \d+:\d\d\] `,
		`(?m)^skipped: no part \(TestB\)$`, `(?m)^soak only: an hour \(TestLong\)$`, `(?m)^1 tests were left to the soak`, `(?m)^2 passed, 0 failed, 1 skipped$`)
	if _, err := os.Stat(times); err != nil {
		t.Error(err)
	}
	check(0, `^4 packages\. It takes about \d+:\d\d minutes`, `\[4/4  \d+:\d\d of about \d+:\d\d\]`)
	before, err := os.ReadFile(times)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("FAIL_D", "1")
	check(1, `(?s)asked to.*FAIL .*example.test/m/c/d.*asked to`, `1 failed`)
	if after, err := os.ReadFile(times); err != nil || !bytes.Equal(before, after) {
		t.Errorf("a run with failures changed the times: %s, %v", after, err)
	}
}

// TestTimesOfCachedRuns keeps what is known when go test had most results from its cache.
func TestTimesOfCachedRuns(t *testing.T) {
	file := filepath.Join(t.TempDir(), "times.json")
	now := time.Unix(0, 0)
	took := func(d time.Duration) {
		p := newProgress(2, file, func() time.Time { return now })
		now = now.Add(d)
		p.done(event{Action: "pass"})
		p.done(event{Action: "pass"})
		if err := p.save(); err != nil {
			t.Fatal(err)
		}
	}
	took(30 * time.Minute)
	took(time.Minute)
	if got := newProgress(3, file, time.Now).about(); got != 45*time.Minute {
		t.Errorf("three packages take %v after two took 30 minutes", got)
	}
	took(20 * time.Minute)
	if got := newProgress(2, file, time.Now).about(); got != 20*time.Minute {
		t.Errorf("two packages take %v after they took 20 minutes", got)
	}
	for _, bad := range [][]string{nil, {"go", "test"}, {"--"}, {"--", "go", "vet"}, {"--", "go", "test", "--"}} {
		if _, ok := split(bad); ok {
			t.Errorf("%s is not a command of tests", strings.Join(bad, " "))
		}
	}
}
