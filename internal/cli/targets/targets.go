// Package targets has the commands for targets: bragg targets list, check and init, and bragg image for their guests.
//
//	a word or a target file ──▶ Path ──▶ the provider opens it, as in a run ──▶ nodes, capabilities, BMCs
//
// Program describes how sessions and targets start this program again.
package targets

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	collected "github.com/braggdev/bragg/internal/collect/builtin"
	"github.com/braggdev/bragg/internal/console"
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/bmc"
	targetbuiltin "github.com/braggdev/bragg/internal/target/builtin"
	"github.com/braggdev/bragg/internal/textio"
	"github.com/braggdev/bragg/internal/unit"
)

// NewTargets returns the command targets.
func NewTargets(p *console.Process) *cobra.Command {
	return console.HoldsVerbs(&cobra.Command{
		Use:   "targets",
		Short: "List providers, create or check target files",
	}, newTargetsList(p), newTargetsInit(p), newTargetsCheck(p))
}

func newTargetsList(p *console.Process) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List target providers",
		Example: "  bragg targets list",
		Args:    console.Between(0, 0),
		RunE: func(*cobra.Command, []string) error {
			type line struct {
				Provider string `json:"provider"`
				Summary  string `json:"summary"`
				BuiltIn  bool   `json:"built_in"` // usable by its name, without a target file
			}
			var lines []line
			t := console.Table{Head: []string{"PROVIDER", "WHAT IT IS", "USE"}}
			for _, provider := range targetbuiltin.Providers() {
				lines = append(lines, line{provider.Name, provider.Summary, provider.MakesNodes})
				use := "a target file with provider: " + provider.Name
				if provider.MakesNodes {
					use = "--target " + provider.Name + " or " + provider.Name + ":NODES"
				}
				t.Add(provider.Name, provider.Summary, use)
			}
			if asJSON {
				return p.PrintJSON(lines)
			}
			if err := t.Print(p.Stdout); err != nil {
				return err
			}
			_, err := fmt.Fprint(p.Stdout, "\nCheck a target: bragg targets check TARGET. Schema of target files: bragg schema target\n")
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// checkedTarget is what `targets check --json` prints.
type checkedTarget struct {
	Target       string              `json:"target"`
	Inventory    target.Inventory    `json:"inventory"`
	Capabilities []target.Capability `json:"capabilities"`
	BMCs         []bmc.Reading       `json:"bmcs,omitempty"`
	Sources      []plan.Source       `json:"sources,omitempty"`
	Problems     diag.List           `json:"problems"`
}

func newTargetsCheck(p *console.Process) *cobra.Command {
	var asJSON bool
	var runs string
	cmd := &cobra.Command{
		Use:   "check [TARGET]",
		Short: "Check a target: file, credentials, connection, inventory",
		Long: "Check reads the target file, resolves its secrets (and never prints them), connects, and prints nodes, free\n" +
			"space and supported operations. It reads the power state and identity of each BMC, and each source once. It\n" +
			"changes nothing.\n\n" +
			"TARGET is local (the default), local:NODES, fake:NODES or the path of a target file.",
		Example:           "  bragg targets check\n  bragg targets check cluster.yml --json",
		Args:              console.Between(0, 1),
		ValidArgsFunction: Complete(p),
		RunE: func(cmd *cobra.Command, args []string) error {
			word := "local"
			if len(args) == 1 {
				word = args[0]
			}
			checked, err := checkTarget(cmd.Context(), p, Path(p, word), p.RunsDirectory(runs))
			if err != nil {
				return err
			}
			if asJSON {
				err = p.PrintJSON(checked)
			} else {
				err = printChecked(p, checked)
				if err == nil && len(args) == 1 && !checked.Problems.HasErrors() {
					next := textio.Shell("bragg", "plan", "four_corners", "--target", word, "--rehearse", "60s")
					_, err = fmt.Fprintf(p.Stdout, "\nThis target can be used. Next: %s\n", next)
				}
			}
			if err == nil && checked.Problems.HasErrors() {
				return console.ExitWith(checkedCode(checked.Problems))
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	p.RunsFlag(cmd.Flags(), &runs)
	return cmd
}

// checkTarget opens a target as a run would. A provider creates no files in the folder before it creates a VM, so a check leaves
// no files.
func checkTarget(ctx context.Context, p *console.Process, spec, runs string) (checkedTarget, error) {
	checked := checkedTarget{Target: spec, Capabilities: []target.Capability{}, Problems: diag.List{}}
	o := target.OpenOptions{
		Dir: filepath.Join(runs, "check"), AgentCommand: []string{p.Executable, HiddenAgent}, AgentProgram: Program(p).Agent,
	}
	var problems diag.List
	checked.Inventory, problems = targetbuiltin.Check(ctx, spec, o)
	checked.Problems = append(checked.Problems, problems...)
	if c, err := targetbuiltin.Load(spec); err == nil {
		checked.BMCs, problems = bmc.Check(ctx, c)
		checked.Problems = append(checked.Problems, problems...)
		checked.Sources, problems = collected.Check(ctx, &c, checked.Inventory.Nodes)
		checked.Problems = append(append(checked.Problems, problems...), collected.CheckCharts(&c)...)
	}
	if checked.Problems.HasErrors() {
		return checked, nil
	}
	t, err := targetbuiltin.Open(ctx, spec, o)
	if err != nil {
		return checked, err
	}
	checked.Capabilities = target.Capabilities(t)
	return checked, t.Close()
}

// checkedCode is ExitUnavailable if the file is valid and a secret, the platform or a BMC is not available, otherwise ExitData.
func checkedCode(problems diag.List) int {
	for _, d := range problems {
		if d.Severity == diag.SeverityError && d.Pos.Line > 0 && !bmc.Away(d.Code) && d.Code != target.CodeSecret {
			return diag.ExitData
		}
	}
	return diag.ExitUnavailable
}

func printChecked(p *console.Process, c checkedTarget) error {
	console.PrintDiagnostics(p.Stderr, c.Problems)
	inv := c.Inventory
	var b strings.Builder
	if len(inv.Nodes) == 0 {
		writeBMCs(&b, c.BMCs) // which may answer although the platform does not
		_, err := fmt.Fprint(p.Stdout, textio.Lines(b.String()))
		return err
	}
	fmt.Fprintf(&b, "target    %s (%s)\n", inv.Name, inv.Provider)
	if inv.Simulated {
		fmt.Fprintf(&b, "          SIMULATED: no real hardware\n")
	}
	if inv.TotalBytes > 0 {
		fmt.Fprintf(&b, "storage   %s free of %s\n", unit.FormatBytes(inv.FreeBytes), unit.FormatBytes(inv.TotalBytes))
	}
	if inv.Replication > 1 {
		fmt.Fprintf(&b, "          replication factor %d\n", inv.Replication)
	}
	if inv.AddressesMax > 0 {
		fmt.Fprintf(&b, "addresses for %d VMs\n", inv.AddressesMax)
	}
	images := strings.Join(inv.Templates, ", ")
	if inv.AnyTemplate {
		images = "any name (the target has no images to choose from)"
	}
	fmt.Fprintf(&b, "templates %s\n", images)
	power := "not allowed"
	if inv.PowerAllowed {
		power = "allowed"
	}
	fmt.Fprintf(&b, "node power operations %s\n", power)
	for _, f := range inv.Facts {
		fmt.Fprintf(&b, "fact      %s: %s\n", f.Name, f.Value)
	}
	nodes := console.Table{Head: []string{"NODE", "NAME", "ADDRESS", "CPUS", "RAM", "BMC"}}
	for _, n := range inv.Nodes {
		nodes.Add(n.ID, n.Name, cmp.Or(n.Address, "–"), console.Number(n.CPUs), console.Bytes(n.RAMBytes), yesNo(n.HasBMC))
	}
	nodes.Section(&b)
	writeBMCs(&b, c.BMCs)
	writeSources(&b, c.Sources)
	can := console.Table{Head: []string{"CAPABILITY", "HERE"}, Width: p.Columns()}
	for _, capability := range c.Capabilities {
		here := "real"
		if text, ok := inv.Simulates[capability]; ok {
			here = "simulated: " + text
		}
		can.Add(string(capability), here)
	}
	if inv.Simulated {
		can = console.Table{Head: []string{"CAPABILITY"}}
		for _, capability := range c.Capabilities {
			can.Add(string(capability))
		}
	}
	can.Section(&b)
	_, err := fmt.Fprint(p.Stdout, textio.Lines(b.String()))
	return err
}

func writeBMCs(b *strings.Builder, readings []bmc.Reading) {
	if len(readings) == 0 {
		return
	}
	t := console.Table{Head: []string{"NODE", "BMC", "ADDRESS", "POWER", "IDENTITY", "VERIFIED BY"}}
	for _, r := range readings {
		t.Add(r.Node, r.Protocol, r.Address, string(r.Power), r.Identity.String(), cmp.Or(r.Matches, "–"))
	}
	t.Section(b)
}

func writeSources(b *strings.Builder, sources []plan.Source) {
	if len(sources) == 0 {
		return
	}
	t := console.Table{Head: []string{"SOURCE", "KIND", "EVERY", "NODES", "VMS", "NOW"}}
	for _, s := range sources {
		t.Add(s.Name, s.Kind, unit.FormatDuration(s.Interval), cmp.Or(s.Nodes, "not mapped"), cmp.Or(s.VMs, "not mapped"), s.Check.Answer())
	}
	t.Section(b)
}

func yesNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}

// Path makes the path of a target file absolute and returns built-in names unchanged.
func Path(p *console.Process, word string) string {
	if strings.ContainsAny(word, "/\\") || strings.HasSuffix(word, ".yml") || strings.HasSuffix(word, ".yaml") {
		return p.Path(word)
	}
	return word
}

// targetFilesMax bounds the files that are offered from one folder.
const targetFilesMax = 500

// Complete offers the built-in targets, target files, and folders on the way to them.
func Complete(p *console.Process) console.Completer {
	return func(_ *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
		var words []string
		for _, provider := range targetbuiltin.Providers() {
			if provider.MakesNodes {
				words = append(words, provider.Name+"\t"+provider.Summary)
			}
		}
		words = console.Fitting(words, nil, begun)
		folder, part := filepath.Split(begun)
		entries, err := os.ReadDir(cmp.Or(p.Path(folder), p.Directory))
		if err != nil {
			return words, cobra.ShellCompDirectiveNoFileComp
		}
		for _, e := range entries {
			name := folder + e.Name()
			if strings.HasPrefix(e.Name(), ".") && part == "" || !strings.HasPrefix(e.Name(), part) || len(words) >= targetFilesMax {
				continue
			}
			switch filepath.Ext(e.Name()) {
			case ".yml", ".yaml":
			default:
				info, err := os.Stat(p.Path(name)) // follows links
				if err != nil || !info.IsDir() {
					continue
				}
				name += "/"
			}
			words = append(words, console.Fitting([]string{name}, nil, begun)...)
		}
		if len(words) == 1 && strings.HasSuffix(words[0], "/") {
			return words, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
		}
		return words, cobra.ShellCompDirectiveNoFileComp
	}
}
