// Command summary runs `go test` and closes with what a person must know: the tests that failed, the tests that were
// skipped and why, and one line of counts.
//
//	go run ./internal/testreq/summary -- go test ./...
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
)

func main() {
	args := os.Args[1:]
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) < 2 || args[1] != "test" {
		fmt.Fprintln(os.Stderr, "usage: summary -- go test [flags] [packages]")
		os.Exit(64)
	}
	code, err := run(append([]string{args[0], "test", "-json"}, args[2:]...))
	if err != nil {
		fmt.Fprintln(os.Stderr, "summary:", err)
	}
	os.Exit(code)
}

// event is one line of `go test -json` (see `go doc test2json`).
type event struct {
	Action, Package, Test, Output string
	ImportPath                    string
	Elapsed                       float64
}

func run(command []string) (int, error) {
	test := exec.Command(command[0], command[1:]...)
	test.Stderr = os.Stderr
	pipe, err := test.StdoutPipe()
	if err != nil {
		return 70, err
	}
	if err := test.Start(); err != nil {
		return 70, err
	}
	t := newTally()
	if err := t.read(pipe); err != nil {
		return 70, err
	}
	waited := test.Wait()
	t.print(os.Stdout)
	if waited != nil && t.failed == 0 {
		return 1, fmt.Errorf("%s: %w", strings.Join(command[:2], " "), waited)
	}
	if waited != nil {
		return 1, nil
	}
	return 0, nil
}

// tally counts tests and keeps the output of those that did not pass.
type tally struct {
	passed, failed, skipped int
	output                  map[string][]string // by package and test
	failures                []string
	reasons                 map[string][]string // reason → tests
}

func newTally() *tally {
	return &tally{output: map[string][]string{}, reasons: map[string][]string{}}
}

func (t *tally) read(r io.Reader) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			fmt.Println(lines.Text())
			continue
		}
		t.add(e)
	}
	return lines.Err()
}

func (t *tally) add(e event) {
	key := e.Package + " " + e.Test
	switch e.Action {
	case "output":
		t.output[key] = append(t.output[key], e.Output)
	case "build-output":
		fmt.Print(e.Output)
	case "pass", "fail", "skip":
		if e.Test == "" {
			t.packageDone(e)
		} else {
			t.testDone(e, key)
		}
		delete(t.output, key)
	}
}

func (t *tally) packageDone(e event) {
	fmt.Printf("%-4s %7.1f s  %s\n", map[string]string{"pass": "ok", "fail": "FAIL", "skip": "–"}[e.Action], e.Elapsed, e.Package)
	if e.Action == "fail" {
		t.failures = append(t.failures, strings.Join(t.output[e.Package+" "], ""))
	}
}

func (t *tally) testDone(e event, key string) {
	switch e.Action {
	case "pass":
		t.passed++
	case "fail":
		t.failed++
		t.failures = append(t.failures, strings.Join(t.output[key], ""))
	case "skip":
		t.skipped++
		reason := skipReason(t.output[key])
		t.reasons[reason] = append(t.reasons[reason], e.Test)
	}
}

var skipLine = regexp.MustCompile(`^\s+\S+\.go:\d+: (.*)`)

func skipReason(output []string) string {
	for _, line := range output {
		if found := skipLine.FindStringSubmatch(strings.TrimRight(line, "\n")); found != nil {
			return found[1]
		}
	}
	return "no reason given"
}

func (t *tally) print(w io.Writer) {
	for _, text := range t.failures {
		fmt.Fprint(w, "\n", text)
	}
	reasons := make([]string, 0, len(t.reasons))
	for reason := range t.reasons {
		reasons = append(reasons, reason)
	}
	slices.Sort(reasons)
	for _, reason := range reasons {
		tests := t.reasons[reason]
		names := strings.Join(tests[:min(3, len(tests))], ", ")
		if len(tests) > 3 {
			names += fmt.Sprintf(" and %d more", len(tests)-3)
		}
		fmt.Fprintf(w, "skipped: %s (%s)\n", reason, names)
	}
	fmt.Fprintf(w, "%d passed, %d failed, %d skipped\n", t.passed, t.failed, t.skipped)
}
