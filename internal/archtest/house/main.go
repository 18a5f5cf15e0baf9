// Command house prints how large packages, types and functions are, and which lines occur more than once. Nothing of it is a gate:
// a size is a hint where to look, not a fault.
//
//	go run ./internal/archtest/house [-rows N]
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"text/tabwriter"

	"github.com/braggdev/bragg/internal/archtest/source"
)

func main() {
	rows := flag.Int("rows", 12, "rows of each list below the table of packages")
	flag.Parse()
	if err := report(os.Stdout, *rows); err != nil {
		fmt.Fprintln(os.Stderr, "house:", err)
		os.Exit(70)
	}
}

func report(out io.Writer, rows int) error {
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return fmt.Errorf("find the root of the module: %w", err)
	}
	tree, err := source.Parse(strings.TrimSpace(string(root)))
	if err != nil {
		return err
	}
	s := tree.Measure()
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', tabwriter.AlignRight)
	printPackages(w, s.Packages)
	for _, list := range []struct {
		title string
		items []source.Item
	}{
		{"lines of the longest functions", s.Functions}, {"functions with the most parameters", s.Parameters},
		{"types with the most methods", s.Methods}, {"structs with the most fields", s.Fields}, {"interfaces with the most methods", s.Interfaces},
	} {
		fmt.Fprintf(w, "\n%s\n", list.title)
		for _, item := range list.items[:min(rows, len(list.items))] {
			fmt.Fprintf(w, "%d\t  %s\n", item.Count, item.Name)
		}
	}
	duplicates := tree.Duplicates()
	fmt.Fprintf(w, "\nruns of at least %d lines that occur more than once: %d\n", source.DuplicateLinesMin, len(duplicates))
	for _, d := range duplicates[:min(rows, len(duplicates))] {
		fmt.Fprintf(w, "%d\t  %s:%d, also in %s\n", d.Lines, d.Path, d.Line, d.Again)
	}
	return w.Flush()
}

func printPackages(w io.Writer, packages []source.Package) {
	fmt.Fprintf(w, "lines\ttest lines\tfiles\tlargest\t>%d\t  package (largest file)\n", source.LongFunctionLines)
	var all source.Package
	for _, p := range packages {
		largest := ""
		if p.Largest != "" {
			largest = " (" + p.Largest + ")"
		}
		fmt.Fprintf(w, "%d\t%d\t%d\t%d\t%d\t  %s%s\n", p.Lines, p.TestLines, p.Files, p.LargestOf, p.Long, p.Folder, largest)
		all.Lines, all.TestLines, all.Files, all.Long = all.Lines+p.Lines, all.TestLines+p.TestLines, all.Files+p.Files, all.Long+p.Long
		all.LargestOf = max(all.LargestOf, p.LargestOf)
	}
	fmt.Fprintf(w, "%d\t%d\t%d\t%d\t%d\t  %d packages\n", all.Lines, all.TestLines, all.Files, all.LargestOf, all.Long, len(packages))
}
