// Command summary runs `go test`, in one or several parts, and shows how far it is. It closes with what a person must know: the
// tests that failed, the tests that were skipped and why, those that only the soak runs, and one line of counts.
//
//	go run ./internal/testreq/summary -- go test ./a ./b -- go test -p 2 ./c
//
// With -times FILE it keeps there how long packages took, and says at the start of the next run how long that will be.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"
)

func main() {
	args, times := os.Args[1:], ""
	if len(args) > 1 && args[0] == "-times" {
		times, args = args[1], args[2:]
	}
	parts, ok := split(args)
	if !ok {
		fmt.Fprintln(os.Stderr, "usage: summary [-times FILE] -- go test [flags] [packages] [-- go test [flags] [packages]]...")
		os.Exit(64)
	}
	code, err := run(os.Stdout, times, parts)
	if err != nil {
		fmt.Fprintln(os.Stderr, "summary:", err)
	}
	os.Exit(code)
}

// split parts the arguments at each "--".
func split(args []string) (parts [][]string, ok bool) {
	if len(args) == 0 || args[0] != "--" {
		return nil, false
	}
	for _, a := range args {
		if a == "--" {
			parts = append(parts, nil)
			continue
		}
		parts[len(parts)-1] = append(parts[len(parts)-1], a)
	}
	for _, part := range parts {
		if len(part) < 2 || part[1] != "test" {
			return nil, false
		}
	}
	return parts, true
}

// event is one line of `go test -json` (see `go doc test2json`).
type event struct {
	Action, Package, Test, Output string
	ImportPath                    string
	Elapsed                       float64
}

// run carries the parts out, one after the other, and returns the exit code of the process.
func run(out io.Writer, times string, parts [][]string) (int, error) {
	packages := 0
	for _, part := range parts {
		n, err := countPackages(part)
		if err != nil {
			return 70, err
		}
		packages += n
	}
	t := newTally(out, newProgress(packages, times, time.Now))
	t.progress.begin(out)
	var faults []error
	code := 0
	for _, part := range parts {
		before := t.failed
		waited, err := t.runPart(part)
		if err != nil {
			return 70, err
		}
		if waited != nil {
			code = 1
			if t.failed == before {
				faults = append(faults, fmt.Errorf("%s: %w", strings.Join(part[:2], " "), waited))
			}
		}
	}
	t.print(out)
	return code, errors.Join(append(faults, t.progress.save())...)
}

// countPackages asks go list how many packages the patterns of a command mean. They follow the flags.
func countPackages(command []string) (int, error) {
	patterns := command[2:]
	for i, a := range command {
		if strings.HasPrefix(a, "./") || strings.Contains(a, "/") && !strings.HasPrefix(a, "-") {
			if i >= 2 {
				patterns = command[i:]
				break
			}
		}
	}
	text, err := exec.Command(command[0], append([]string{"list"}, patterns...)...).Output()
	if err != nil {
		return 0, fmt.Errorf("%s list: %w", command[0], err)
	}
	return len(strings.Fields(string(text))), nil
}

// runPart runs one command; waited is how it ended.
func (t *tally) runPart(command []string) (waited, err error) {
	test := exec.Command(command[0], append([]string{"test", "-json"}, command[2:]...)...)
	test.Stderr = os.Stderr
	pipe, err := test.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := test.Start(); err != nil {
		return nil, err
	}
	if err := t.read(pipe); err != nil {
		return nil, errors.Join(err, test.Process.Kill(), test.Wait())
	}
	return test.Wait(), nil
}

// soakOnly begins the reason of a test that only the soak runs (testreq.SoakOnly).
const soakOnly = "soak only: "

// tally counts tests and keeps the output of those that did not pass. Tests of the soak alone are not among the skipped ones.
type tally struct {
	passed, failed, skipped int
	soak                    int
	output                  map[string][]string // by package and test
	failures                []string
	reasons                 map[string][]string // reason → tests
	out                     io.Writer
	progress                *progress
}

func newTally(out io.Writer, p *progress) *tally {
	return &tally{output: map[string][]string{}, reasons: map[string][]string{}, out: out, progress: p}
}

func (t *tally) read(r io.Reader) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			fmt.Fprintln(t.out, lines.Text())
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
		fmt.Fprint(t.out, e.Output)
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
	mark := map[string]string{"pass": "ok", "fail": "FAIL", "skip": "–"}[e.Action]
	fmt.Fprintf(t.out, "%s  %-4s %7.1f s  %s\n", t.progress.done(e), mark, e.Elapsed, e.Package)
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
		text := strings.Join(t.output[key], "")
		fmt.Fprint(t.out, "\n", text) // now, and at the end again: the rest may take half an hour
		t.failures = append(t.failures, text)
	case "skip":
		reason := skipReason(t.output[key])
		if strings.HasPrefix(reason, soakOnly) {
			t.soak++
		} else {
			t.skipped++
		}
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
		if !strings.HasPrefix(reason, soakOnly) {
			reason = "skipped: " + reason
		}
		fmt.Fprintf(w, "%s (%s)\n", reason, names)
	}
	if t.soak > 0 {
		fmt.Fprintf(w, "%d tests were left to the soak (docs/soak.md)\n", t.soak)
	}
	fmt.Fprintf(w, "%d passed, %d failed, %d skipped\n", t.passed, t.failed, t.skipped)
}
