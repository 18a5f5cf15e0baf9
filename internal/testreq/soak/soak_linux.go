// Command soak runs one part of the soak and records its result in the table of docs/soak.md.
//
//	go run ./internal/testreq/soak -part outage -- env BRAGG_SOAK_OUTAGE=60s go test ./internal/agent ... -- env ...
//
// Commands run one after the other, all of them within the limit, and with BRAGG_TEST_REQUIRE=all: where something is missing, the part fails.
// They are `go test -v`, whose lines of passed, failed and skipped tests are counted. An interrupted part is not recorded.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

func main() {
	part := flag.String("part", "", "name of the part, as in the table")
	limit := flag.Duration("limit", 40*time.Minute, "the part is stopped then")
	page := flag.String("page", filepath.Join("docs", "soak.md"), "page with the table")
	flag.Parse()
	commands := split(flag.Args())
	if *part == "" || len(commands) == 0 {
		fmt.Fprintln(os.Stderr, "usage: soak -part NAME [-limit 40m] [-page FILE] -- command [-- command]...")
		os.Exit(64)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ok, err := soak(ctx, os.Stdout, *page, *part, *limit, commands)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(70)
	}
	if !ok {
		os.Exit(1)
	}
}

// split parts arguments at each "--". The flag package has removed the first one.
func split(args []string) (commands [][]string) {
	begin := true
	for _, a := range args {
		if a == "--" {
			begin = true
			continue
		}
		if begin {
			commands, begin = append(commands, nil), false
		}
		last := len(commands) - 1
		commands[last] = append(commands[last], a)
	}
	return commands
}

// soak runs a part and records it.
func soak(ctx context.Context, out io.Writer, page, part string, limit time.Duration, commands [][]string) (ok bool, err error) {
	if _, err := readRow(page, part); err != nil {
		return false, err // before the part runs
	}
	commit := commitOf(page)
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	began := time.Now()
	var c counts
	for _, command := range commands {
		if !c.run(bounded, out, command) {
			break
		}
	}
	if ctx.Err() != nil {
		return false, fmt.Errorf("part %s was interrupted, and is not recorded", part)
	}
	c.stopped = bounded.Err() != nil
	took := time.Since(began).Round(time.Second)
	result, ok := c.result(limit)
	fmt.Fprintf(out, "%s: %s, in %s\n", part, result, took)
	return ok, record(page, part, outcome{took: took.String(), date: began.Format(time.DateOnly), commit: commit, result: result})
}

// commitOf names the commit of the checkout, and whether other files than the page have changed.
func commitOf(page string) string {
	dir := filepath.Dir(page)
	commit, err := exec.Command("git", "-C", dir, "rev-parse", "--short=8", "HEAD").Output()
	if err != nil {
		return "unknown"
	}
	name := strings.TrimSpace(string(commit))
	changed, err := exec.Command("git", "-C", dir, "status", "--porcelain", "--untracked-files=no", "--", ":/", ":!"+filepath.Base(page)).Output()
	if err != nil || len(changed) > 0 {
		name += ".dirty"
	}
	return name
}

// counts are those of the tests of a part.
type counts struct {
	passed, skipped int
	failed          []string
	broken          bool // a command failed
	stopped         bool // at the limit
}

var testLine = regexp.MustCompile(`^\s*--- (PASS|FAIL|SKIP): (\S+)`)

// killAfter is how long a command has to end after SIGINT.
const killAfter = 30 * time.Second

// run runs one command and reports whether the next one can run.
func (c *counts) run(ctx context.Context, out io.Writer, args []string) bool {
	fmt.Fprintln(out, strings.Join(args, " "))
	command := exec.CommandContext(ctx, args[0], args[1:]...)
	command.Env = append(os.Environ(), "BRAGG_TEST_REQUIRE=all")
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // go test does not stop its test binaries
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGINT) }
	command.WaitDelay = killAfter
	read, write, err := os.Pipe()
	if err != nil {
		c.broken = true
		return false
	}
	defer read.Close()
	command.Stdout, command.Stderr = write, write
	if err := errors.Join(command.Start(), write.Close()); err != nil {
		fmt.Fprintln(out, err)
		c.broken = true
		return false
	}
	ended := make(chan error, 1)
	go func() {
		err := command.Wait()
		if ctx.Err() != nil { // the test binaries may still run, and hold the pipe
			_ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL)
		}
		ended <- err
	}()
	for lines := bufio.NewScanner(read); lines.Scan(); {
		fmt.Fprintln(out, lines.Text())
		c.count(lines.Text())
	}
	err = <-ended
	c.broken = c.broken || err != nil
	return ctx.Err() == nil
}

func (c *counts) count(line string) {
	m := testLine.FindStringSubmatch(line)
	if m == nil {
		return
	}
	switch m[1] {
	case "PASS":
		c.passed++
	case "SKIP":
		c.skipped++
	case "FAIL":
		c.failed = append(c.failed, m[2])
	}
}

// namedMax is how many failed tests the table names.
const namedMax = 3

// result is the text of the table. A part without a test that passed did not run.
func (c *counts) result(limit time.Duration) (text string, ok bool) {
	skipped := ""
	if c.skipped > 0 {
		skipped = fmt.Sprintf(", %d skipped", c.skipped)
	}
	switch {
	case c.stopped:
		return fmt.Sprintf("STOPPED at its limit of %v: %d passed, %d failed%s", limit, c.passed, len(c.failed), skipped), false
	case len(c.failed) > 0:
		return fmt.Sprintf("FAILED: %d passed, %d failed%s (%s)", c.passed, len(c.failed), skipped, strings.Join(c.failed[:min(namedMax, len(c.failed))], ", ")), false
	case c.broken:
		return fmt.Sprintf("FAILED outside of a test: %d passed%s", c.passed, skipped), false
	case c.passed == 0:
		return fmt.Sprintf("did not run: %d skipped", c.skipped), false
	}
	return fmt.Sprintf("passed: %d tests%s", c.passed, skipped), true
}
