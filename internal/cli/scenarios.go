package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"html"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/braggdev/bragg/internal/console"
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/textio"
	"github.com/braggdev/bragg/internal/unit"
	"github.com/braggdev/bragg/scenarios"
)

// scenarioHelp explains SCENARIO in the help of every command that takes one.
const scenarioHelp = "SCENARIO is the name of a built-in scenario (bragg scenarios lists them) or the path of a folder with\n" +
	"a test.yml; a path contains a slash: ./my_scenario."

// choice holds the flags that choose values of a scenario's variables.
type choice struct {
	set    []string
	preset string
}

func (c *choice) flags(flags *pflag.FlagSet) {
	flags.StringArrayVar(&c.set, "set", nil, "set a variable, `NAME=VALUE`; repeatable")
	flags.StringVar(&c.preset, "preset", "", "`NAME` of a preset of the scenario")
}

func (c *choice) options() (scenario.Options, error) {
	o := scenario.Options{Set: map[string]string{}, Preset: c.preset}
	for _, text := range c.set {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return o, &diag.Error{
				Code: "bad-flag", Message: "--set " + strconv.Quote(text) + " is not NAME=VALUE", Exit: diag.ExitUsage,
				Hint: "for example --set runtime_secs=60",
			}
		}
		if _, twice := o.Set[name]; twice {
			return o, &diag.Error{
				Code: "bad-flag", Message: "--set: duplicate variable " + strconv.Quote(name), Exit: diag.ExitUsage,
			}
		}
		o.Set[name] = value
	}
	return o, nil
}

// shipped lists the names of the scenarios inside the program.
func shipped() ([]string, error) {
	entries, err := fs.ReadDir(scenarios.FS, ".")
	if err != nil {
		return nil, fmt.Errorf("list shipped scenarios: %w", err)
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// sourceOf finds the folder for a word of the command line: a shipped name, otherwise a path.
func sourceOf(p *console.Process, word string) (scenario.Source, error) {
	names, err := shipped()
	if err != nil {
		return scenario.Source{}, err
	}
	if slices.Contains(names, word) {
		sub, err := fs.Sub(scenarios.FS, word)
		return scenario.Source{FS: sub, Name: word, Trusted: true}, err
	}
	place := p.Path(word)
	if _, err := os.Stat(place); !errors.Is(err, fs.ErrNotExist) {
		return scenario.Source{Path: place}, nil
	}
	return scenario.Source{}, unknownScenario(word, names)
}

// suggestedMax is how many names a hint suggests; more are left to the list.
const suggestedMax = 3

// unknownScenario suggests built-in scenarios whose name is almost word, or contains it, unless word is a path.
func unknownScenario(word string, names []string) error {
	if strings.Contains(word, "/") {
		return &diag.Error{
			Code: "no-scenario", Message: "no file or folder " + strconv.Quote(word), Exit: diag.ExitUsage,
			Hint: "a scenario is a folder with a test.yml, or the name of a built-in one: bragg scenarios lists them",
		}
	}
	e := &diag.Error{
		Code: "no-scenario", Message: "unknown scenario " + strconv.Quote(word), Exit: diag.ExitUsage,
		Hint: "bragg scenarios lists the built-in ones; otherwise give the path of a folder",
	}
	near := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return word == "" || !strings.Contains(name, word) })
	if one := diag.Nearest(word, names); one != "" {
		near = []string{one}
	}
	if len(near) > 0 && len(near) <= suggestedMax {
		e.Hint = "did you mean " + strings.Join(near, " or ") + "?"
	}
	return e
}

// loadScenario reads one scenario that the command line names.
func loadScenario(ctx context.Context, p *console.Process, word string, c *choice) (*scenario.Scenario, error) {
	options, err := c.options()
	if err != nil {
		return nil, err
	}
	src, err := sourceOf(p, word)
	if err != nil {
		return nil, err
	}
	return scenario.Load(ctx, src, options)
}

func newScenarios(p *console.Process) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "scenarios [SCENARIO]",
		Short: "List or describe scenarios",
		Long: "Scenarios lists the built-in scenarios. With a name or a path it describes one scenario: its purpose, its\n" +
			"groups and workloads, and its variables for --set.\n\n" + scenarioHelp,
		Example: "  bragg scenarios\n  bragg scenarios four_corners\n  bragg scenarios ./my_scenario --json",
		Args:    console.Between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				sc, err := loadScenario(cmd.Context(), p, args[0], &choice{})
				if err != nil {
					return err
				}
				if asJSON {
					return p.PrintJSON(sc)
				}
				return printScenario(p, args[0], sc)
			}
			return listScenarios(cmd.Context(), p, asJSON)
		},
		ValidArgsFunction: completeScenarios,
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.AddCommand(newScenariosCopy(p))
	return cmd
}

func listScenarios(ctx context.Context, p *console.Process, asJSON bool) error {
	names, err := shipped()
	if err != nil {
		return err
	}
	var all []*scenario.Scenario
	t := console.Table{Head: []string{"SCENARIO", "FULL LENGTH", "WHAT IT DOES"}, Width: p.Columns()}
	for _, name := range names {
		sc, err := loadScenario(ctx, p, name, &choice{})
		if err != nil {
			return fmt.Errorf("load shipped scenario %q: %w", name, err)
		}
		all = append(all, sc)
		t.Add(name, unit.FormatDuration(sc.EstimatedRuntime), sc.Summary)
	}
	if asJSON {
		return p.PrintJSON(all)
	}
	if err := t.Print(p.Stdout); err != nil {
		return err
	}
	const next = "Describe one: bragg scenarios NAME. Try it here in about a minute: bragg run NAME --rehearse 60s"
	_, err = fmt.Fprintf(p.Stdout, "\n%s\n", console.Paragraphs(next, p.TextWidth()))
	return err
}

func printScenario(p *console.Process, word string, sc *scenario.Scenario) error {
	w := &strings.Builder{}
	fmt.Fprintf(w, "%s — %s\n%s\n", sc.Name, sc.DisplayName, console.Paragraphs(sc.Summary, p.TextWidth()))
	if text := plainText(sc.Description, p.TextWidth()); text != "" {
		fmt.Fprintf(w, "\n%s\n", text)
	}
	fmt.Fprintf(w, "\nFull length: about %s\n", unit.FormatDuration(sc.EstimatedRuntime))
	if len(sc.Tags) > 0 {
		fmt.Fprintf(w, "Tags: %s\n", strings.Join(sc.Tags, ", "))
	}
	if len(sc.Groups) > 0 {
		t := console.Table{Head: []string{"GROUP", "VMS", "VCPUS", "RAM", "DATA DISKS", "NODES"}}
		for _, g := range sc.Groups {
			t.Add(g.Name, vmCount(g), console.Number(g.VCPUs), console.Bytes(g.RAMBytes),
				fmt.Sprintf("%d × %s", g.DiskCount, unit.FormatBytes(g.DiskBytes)), cmp.Or(g.Nodes, "all"))
		}
		t.Section(w)
	}
	if len(sc.Workloads) > 0 {
		t := console.Table{Head: []string{"WORKLOAD", "GROUP", "FILE"}}
		for _, l := range sc.Workloads {
			t.Add(l.Name, l.Group, cmp.Or(l.ConfigFile, l.Generator))
		}
		t.Section(w)
	}
	writeVariables(w, sc, p.Columns())
	if len(sc.Presets) > 0 {
		fmt.Fprintf(w, "\nPresets: %s\n", strings.Join(sc.Presets, ", "))
	}
	fmt.Fprintf(w, "\nNext: bragg plan %s\n", word)
	_, err := fmt.Fprint(p.Stdout, textio.Lines(w.String()))
	return err
}

func writeVariables(w *strings.Builder, sc *scenario.Scenario, width int) {
	t := console.Table{Head: []string{"VARIABLE", "DEFAULT", "ALLOWED", "MEANING"}, Width: width}
	for _, v := range sc.Variables {
		if v.Hidden {
			continue
		}
		t.Add(v.Name, fmt.Sprint(v.Default), allowed(v), oneLine(cmp.Or(v.Description, v.DisplayName)))
	}
	if t.Len() > 0 {
		t.Section(w)
	}
}

func allowed(v scenario.Variable) string {
	switch {
	case len(v.Options) > 0:
		var all []string
		for _, o := range v.Options {
			all = append(all, fmt.Sprint(o))
		}
		return strings.Join(all, ", ")
	case v.Min != nil && v.Max != nil:
		return fmt.Sprintf("%v to %v", v.Min, v.Max)
	case v.Min != nil:
		return fmt.Sprintf("from %v", v.Min)
	case v.Max != nil:
		return fmt.Sprintf("up to %v", v.Max)
	}
	return ""
}

func vmCount(g scenario.Group) string {
	switch {
	case g.PerCluster > 0:
		return fmt.Sprintf("%d in total", g.PerCluster)
	case g.PerNode > 0:
		return fmt.Sprintf("%d per node", g.PerNode)
	}
	return "1 per node"
}

func oneLine(s string) string {
	return strings.Join(strings.Fields(plainText(s, console.TextWidthMax)), " ")
}

var (
	itemTag  = regexp.MustCompile(`(?i)<li\b[^>]*>\s*`)
	blockTag = regexp.MustCompile(`(?i)</?(p|ul|ol|div|br|h[1-6]|table|tr)\b[^>]*>`)
	anyTag   = regexp.MustCompile(`<[^<>]*>`)
	wideGap  = regexp.MustCompile(`\n\s*\n\s*`)
)

// plainText returns a description, which is HTML in X-Ray, without its tags. It is only for a terminal, where remaining tags of
// hostile text have no effect.
func plainText(s string, width int) string {
	s = strings.ReplaceAll(s, "\n", " ")
	s = itemTag.ReplaceAllString(s, "\n  • ")
	s = blockTag.ReplaceAllString(s, "\n\n")
	s = html.UnescapeString(anyTag.ReplaceAllString(s, ""))
	var lines []string
	for _, line := range strings.Split(wideGap.ReplaceAllString(s, "\n\n"), "\n") {
		lines = append(lines, console.Wrap(line, width)...)
	}
	return strings.TrimSpace(strings.ReplaceAll(strings.Join(lines, "\n"), "\n\n  •", "\n  •"))
}
