// Command profile shows what tests cost: the CPU time of packages and of their slowest tests, the time in which they only wait, the processes
// that they start and the bytes that they write. Compiling and linking have columns of their own.
//
//	go run ./internal/testreq/profile [-run REGEXP] [-rows N] packages...
//
// Packages run one after the other. Each test binary is built first, and then runs in a control group of its own (cgroup v2), so that
// processes count that are never waited for. Where control groups cannot be made, CPU time is that of the test binary and of those of its
// children that it waited for; the first line of the output says which.
//
//	build_linux.go      go test -c, and what of it was linking
//	run_linux.go        runs a test binary and shares its cost out to tests
//	meters_linux.go     counters of a process tree
//	connector_linux.go  counts processes by the kernel's process events
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

type options struct {
	run      string // tests, as of go test; "": all
	rows     int    // of the table of tests
	short    bool
	patterns []string
}

func main() {
	var o options
	flag.StringVar(&o.run, "run", "", "run only tests that match, as go test -run")
	flag.IntVar(&o.rows, "rows", 20, "rows of the table of tests")
	flag.BoolVar(&o.short, "short", false, "run tests with -short")
	flag.Parse()
	o.patterns = flag.Args()
	if len(o.patterns) == 0 {
		fmt.Fprintln(os.Stderr, "profile: no packages: make test-profile PKG=./internal/lease/...")
		os.Exit(64)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	failed, err := profile(ctx, os.Stdout, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "profile:", err)
		os.Exit(70)
	}
	if failed {
		os.Exit(1)
	}
}

// cost is what a package or a test needed.
type cost struct {
	Wall, CPU, Starved time.Duration
	Processes          int
	Written            int64
}

func (c cost) plus(d cost) cost {
	return cost{c.Wall + d.Wall, c.CPU + d.CPU, c.Starved + d.Starved, c.Processes + d.Processes, c.Written + d.Written}
}

// waiting is the time without CPU time. Tests that keep several processors busy may have none.
func (c cost) waiting() time.Duration { return max(0, c.Wall-c.CPU) }

// testCost is the cost of one test with its subtests.
type testCost struct {
	cost
	Package, Test string
	Shared        bool // it ran beside others, and has an equal part of what they cost together
}

// packageCost is the cost of one package.
type packageCost struct {
	cost
	Package string
	Build   built
	Result  string
	Tests   []testCost
	Left    []string // processes that were still there at the end
}

func profile(ctx context.Context, out io.Writer, o options) (failed bool, err error) {
	dir, err := os.MkdirTemp("", "bragg-profile-")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(dir)
	packages, err := listed(ctx, o.patterns)
	if err != nil {
		return false, err
	}
	forks, err := connect()
	if err != nil {
		forks = nil // counted by looking at /proc
	} else {
		defer forks.close()
	}
	group := groupRoot()
	fmt.Fprintln(out, sources(group, forks != nil))
	var all []packageCost
	for i, p := range packages {
		fmt.Fprintf(os.Stderr, "[%d/%d] %s\n", i+1, len(packages), p.ImportPath)
		c, err := measure(ctx, out, o, p, filepath.Join(dir, fmt.Sprint("test", i)), group, forks)
		if err != nil { // what was measured is worth printing, also after an interrupt
			return failed, errors.Join(fmt.Errorf("%s: %w", p.ImportPath, err), printTables(out, all, o.rows))
		}
		if c.Build.Tests {
			failed = failed || c.Result != "ok"
			all = append(all, c)
		}
	}
	return failed, printTables(out, all, o.rows)
}

// measure builds the tests of a package, runs them, and removes the binary.
func measure(ctx context.Context, out io.Writer, o options, p listedPackage, binary, group string, forks *forks) (c packageCost, err error) {
	b, err := build(ctx, p, binary)
	if err != nil || !b.Tests {
		return packageCost{Build: b}, err
	}
	c, err = runPackage(ctx, out, o, p, binary, group, forks)
	c.Build = b
	return c, errors.Join(err, os.Remove(binary))
}

// listedPackage is what go list says of a package.
type listedPackage struct {
	ImportPath, Dir string
}

func listed(ctx context.Context, patterns []string) (all []listedPackage, err error) {
	text, err := exec.CommandContext(ctx, "go", append([]string{"list", "-f", "{{.ImportPath}}\t{{.Dir}}"}, patterns...)...).Output()
	if err != nil {
		var ended *exec.ExitError
		if errors.As(err, &ended) {
			err = errors.New(strings.TrimSpace(string(ended.Stderr)))
		}
		return nil, fmt.Errorf("go list: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		path, dir, _ := strings.Cut(strings.TrimSpace(line), "\t")
		all = append(all, listedPackage{path, dir})
	}
	return all, nil
}

func printTables(out io.Writer, all []packageCost, rows int) error {
	slices.SortFunc(all, func(a, b packageCost) int { return cmp.Compare(b.Wall, a.Wall) })
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "\nwall s\tCPU s\twaiting s\tstarved s\tprocesses\twritten\tcompile CPU s\tlink CPU s\tbuild s\t  package\n")
	var sum cost
	var sumBuilt built
	var tests []testCost
	for _, p := range all {
		fmt.Fprintf(w, "%s\t%.2f\t%.2f\t%.2f\t  %s %s\n", row(p.cost), p.Build.Compile.Seconds(), p.Build.Link.Seconds(), p.Build.Wall.Seconds(), p.Result, p.Package)
		sum, tests = sum.plus(p.cost), append(tests, p.Tests...)
		sumBuilt = built{Wall: sumBuilt.Wall + p.Build.Wall, Compile: sumBuilt.Compile + p.Build.Compile, Link: sumBuilt.Link + p.Build.Link}
	}
	fmt.Fprintf(w, "%s\t%.2f\t%.2f\t%.2f\t  %d packages\n", row(sum), sumBuilt.Compile.Seconds(), sumBuilt.Link.Seconds(), sumBuilt.Wall.Seconds(), len(all))
	slices.SortStableFunc(tests, func(a, b testCost) int { return cmp.Compare(b.Wall, a.Wall) })
	fmt.Fprint(w, "\nwall s\tCPU s\twaiting s\tstarved s\tprocesses\twritten\t  slowest tests (~: beside others, with an equal part of their common cost)\n")
	for _, t := range tests[:min(rows, len(tests))] {
		mark := " "
		if t.Shared {
			mark = "~"
		}
		fmt.Fprintf(w, "%s\t %s%s %s\n", row(t.cost), mark, t.Package, t.Test)
	}
	err := w.Flush()
	for _, p := range all {
		for _, left := range p.Left {
			fmt.Fprintf(out, "left behind by %s: %s\n", p.Package, left)
		}
	}
	return err
}

func row(c cost) string {
	return fmt.Sprintf("%.2f\t%.2f\t%.2f\t%.2f\t%d\t%s", c.Wall.Seconds(), c.CPU.Seconds(), c.waiting().Seconds(), c.Starved.Seconds(), c.Processes, mebibytes(c.Written))
}

func mebibytes(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }
