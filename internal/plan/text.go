package plan

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/extent"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/textio"
	"github.com/braggdev/bragg/internal/unit"
)

// TextOptions select what the text of a plan shows in addition to the plan.
type TextOptions struct {
	Commands bool // the equivalent fio command of each load, which is long

	guests bool // VMs have systems of their own, which need programs
}

// WriteText prints the plan for readers: whether it fits, the placement of VMs, what is written and switched, and how long it
// takes.
func (p *Plan) WriteText(w io.Writer, o TextOptions) error {
	var b strings.Builder
	o.guests = p.Target.Hypervisor != ""
	p.textHead(&b)
	p.textGroups(&b)
	p.textWorkloads(&b, o)
	p.textSteps(&b)
	p.textTail(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

func (p *Plan) textHead(b *strings.Builder) {
	fmt.Fprintf(b, "Scenario   %s (%s)\n", textio.Line(p.Scenario.DisplayName), textio.Line(p.Scenario.Name))
	kind := ""
	if p.Target.Simulated {
		kind = ", simulated"
	}
	fmt.Fprintf(b, "Target     %s (%s%s), %d nodes\n", textio.Line(p.Target.Name), textio.Line(p.Target.Provider), kind, len(p.Target.Nodes))
	rough := ""
	if p.Estimate.Rough {
		rough = " (estimate: size-bound steps assume " + unit.FormatRate(AssumedBytesPerSecond)
		if p.Estimate.Boots != "" {
			rough += "; a VM boots in " + p.Estimate.Boots
		}
		rough += ")"
	}
	if p.Estimate.Longer > 0 {
		rough += "; at most " + unit.FormatDuration(p.Estimate.Longer) + " longer, until loads are steady"
	}
	fmt.Fprintf(b, "Duration   setup %s, run %s, teardown %s%s\n", unit.FormatDuration(p.Estimate.Setup),
		unit.FormatDuration(p.Estimate.Run), unit.FormatDuration(p.Estimate.Teardown), rough)
	p.textFootprint(b)
	label := "Fits       no:"
	for _, u := range p.Unfit {
		fmt.Fprintf(b, "%s %s (%s)\n", label, textio.Line(u.Message), textio.Line(u.Hint))
		label = "              "
	}
	if r := p.Rehearsal; r != nil {
		nodes := ""
		if r.Nodes[0] != r.Nodes[1] {
			nodes = fmt.Sprintf("; %d nodes instead of %d", r.Nodes[1], r.Nodes[0])
		}
		fmt.Fprintf(b, "\nREHEARSAL  requested %s; all durations × %.6g%s\n", unit.FormatDuration(r.Asked), r.TimeFactor, nodes)
		p.textFactors(b)
	}
}

// textFactors prints the factors of a rehearsal; groups with the same ones share a line.
func (p *Plan) textFactors(b *strings.Builder) {
	var lines []string
	names := map[string][]string{}
	for _, g := range p.Groups {
		line := fmt.Sprintf("sizes × %.6g, %s", p.Rehearsal.SizeFactor[g.Name], textio.Plural(g.CountFinal, "VM"))
		if g.CountFinal != g.ScenarioCountFinal {
			line += fmt.Sprintf(" instead of %d", g.ScenarioCountFinal)
		}
		if c, ok := p.Rehearsal.VCPUs[g.Name]; ok {
			line += fmt.Sprintf(", %d vCPUs instead of %d", c[1], c[0])
		}
		if c, ok := p.Rehearsal.RAMBytes[g.Name]; ok {
			line += fmt.Sprintf(", %s of memory instead of %s", unit.FormatBytes(c[1]), unit.FormatBytes(c[0]))
		}
		if names[line] == nil {
			lines = append(lines, line)
		}
		names[line] = append(names[line], textio.Line(g.Name))
	}
	for _, line := range lines {
		fmt.Fprintf(b, "           %s: %s\n", few(names[line], "groups"), line)
	}
}

// few joins a handful of names and counts the others.
func few(names []string, what string) string {
	if len(names) > namesShownMax {
		return fmt.Sprintf("%s … %s (%d %s)", names[0], names[len(names)-1], len(names), what)
	}
	return strings.Join(names, ", ")
}

func (p *Plan) textFootprint(b *strings.Builder) {
	f := p.Footprint
	fmt.Fprintf(b, "Footprint  %s, %s data", textio.Plural(f.VMs, "VM"), unit.FormatBytes(f.TouchedBytes))
	if f.SnapshotBytes > 0 {
		fmt.Fprintf(b, ", up to %s more for snapshots", unit.FormatBytes(f.SnapshotBytes))
	}
	if f.Replication > 1 {
		fmt.Fprintf(b, ", %s on the storage%s", unit.FormatBytes(f.StoredBytes()), f.Copies())
	}
	if f.BoundBytes > 0 {
		fmt.Fprintf(b, " (bound %s)", unit.FormatBytes(f.BoundBytes))
	}
	if p.Target.FreeBytes > 0 {
		fmt.Fprintf(b, ", %s free", unit.FormatBytes(p.Target.FreeBytes))
	}
	fmt.Fprintf(b, "\nWritten    %s\n", f.Written())
}

func (p *Plan) textGroups(b *strings.Builder) {
	fmt.Fprintf(b, "\nVMs\n")
	for _, g := range p.Groups {
		grown := ""
		if g.CountFinal > g.Count {
			grown = fmt.Sprintf(", grows to %d", g.CountFinal)
		}
		fmt.Fprintf(b, "  %s: %d%s; template %s, %s, %s", textio.Line(g.Name), g.Count, grown, textio.Line(g.Template), g.CPUs(),
			unit.FormatBytes(g.RAMBytes))
		if len(g.Disks) > 0 {
			fmt.Fprintf(b, ", %d × %s (%s)", len(g.Disks), unit.FormatBytes(g.Disks[0].SizeBytes), span(g.Disks))
		}
		b.WriteString("\n")
		p.textPlacement(b, g)
	}
}

// namesShownMax bounds how many VM names are shown per node; JSON has all.
const namesShownMax = 4

func span(disks []Disk) string {
	if len(disks) == 1 {
		return disks[0].Device
	}
	return disks[0].Device + " … " + disks[len(disks)-1].Device
}

func (p *Plan) textPlacement(b *strings.Builder, g Group) {
	for _, n := range p.Target.Nodes {
		var names []string
		for _, vm := range g.VMs {
			if vm.NodeID == n.ID {
				names = append(names, vm.Name)
			}
		}
		if len(names) == 0 {
			continue
		}
		more := ""
		if len(names) > namesShownMax {
			more = fmt.Sprintf(" … %s (%d)", names[len(names)-1], len(names))
			names = names[:namesShownMax-1]
		}
		fmt.Fprintf(b, "    on %s: %s%s\n", textio.Line(n.Name), strings.Join(names, " "), more)
	}
}

func (p *Plan) textWorkloads(b *strings.Builder, o TextOptions) {
	fmt.Fprintf(b, "\nWorkloads (per VM)\n")
	if len(p.Workloads) == 0 {
		b.WriteString("  none\n")
	}
	for _, w := range p.Workloads {
		what := "with " + w.Generator
		if w.ConfigFile != "" {
			what = textio.Line(w.ConfigFile) + " " + what
		}
		fmt.Fprintf(b, "  %s on %s: %s\n", textio.Line(w.Name), textio.Line(w.Group), what)
		if s := w.Servers; s != nil && s.First {
			fmt.Fprintf(b, "    in step: %s\n", s.pairing())
		} else if s != nil {
			what := "servers"
			if s.Holds {
				what = "servers with its data"
			}
			fmt.Fprintf(b, "    %s on %s: %s\n", what, textio.Line(s.Group), s.pairing())
		}
		if w.Load == nil && w.Prefill == nil {
			b.WriteString("    not used by any step\n")
		}
		textLoad(b, "load", w.Load, o)
		textLoad(b, "prefill", w.Prefill, o)
	}
}

func textLoad(b *strings.Builder, label string, p *load.Plan, o TextOptions) {
	if p == nil {
		return
	}
	fmt.Fprintf(b, "    %s: engine %s\n", label, p.Engine)
	textJobs(b, p.Jobs, p.Engine.RateUnit())
	textExtents(b, p.Extents)
	if p.Command != "" && o.Commands {
		fmt.Fprintf(b, "      %s\n", textio.Line(p.Command))
	}
	textProgram(b, p.Program, o)
	for _, note := range p.Notes {
		fmt.Fprintf(b, "      note: %s\n", textio.Line(note))
	}
}

// textProgram prints what a generator runs other programs for.
func textProgram(b *strings.Builder, p *load.ProgramPlan, o TextOptions) {
	if p == nil {
		return
	}
	programs, packages := p.NeedsText()
	fmt.Fprintf(b, "      needs %s\n", programs)
	for _, list := range packages {
		fmt.Fprintf(b, "      packages of %s\n", list)
	}
	if command := p.GuestImage(); o.guests && command != "" {
		fmt.Fprintf(b, "      a Debian guest with them: %s\n", command)
	}
	for _, place := range p.Data {
		fmt.Fprintf(b, "      data on %s\n", textio.Line(place))
	}
	for _, command := range p.Commands {
		fmt.Fprintf(b, "      $ %s\n", textio.Line(command))
	}
}

// textJobs prints the jobs of a file; equal ones share a line.
func textJobs(b *strings.Builder, jobs []load.JobPlan, rateUnit string) {
	var lines []string
	names := map[string][]string{}
	for _, j := range jobs {
		line := j.Pattern
		if j.BlockSizes != "" { // absent if the load does no I/O
			line += " " + j.BlockSizes
		}
		line += fmt.Sprintf(", depth %d", j.QueueDepth)
		if j.RateIOPS > 0 {
			line += fmt.Sprintf(", %s %s", unit.FormatCount(j.RateIOPS), rateUnit)
		}
		if j.BlockSizes != "" {
			line += ", " + unit.FormatBytes(j.SizeBytes)
		}
		if j.Clones > 1 {
			line += fmt.Sprintf(", %d clones", j.Clones)
		}
		if names[line] == nil {
			lines = append(lines, line)
		}
		names[line] = append(names[line], textio.Line(j.Name))
	}
	for _, line := range lines {
		fmt.Fprintf(b, "      [%s] %s\n", few(names[line], "jobs"), line)
	}
}

// textExtents prints every byte range; devices with the same range share a line that names them all.
func textExtents(b *strings.Builder, extents []extent.Extent) {
	var lines []string
	devices := map[string][]string{}
	for _, e := range extents {
		verb := "reads "
		if e.Writes {
			verb = "writes"
		}
		line := fmt.Sprintf("%s bytes %d to %d (%s)", verb, e.Offset, e.Offset+e.Length, unit.FormatBytes(e.Length))
		if devices[line] == nil {
			lines = append(lines, line)
		}
		devices[line] = append(devices[line], textio.Line(e.Device))
	}
	for _, line := range lines {
		fmt.Fprintf(b, "      %s of %s\n", line, strings.Join(devices[line], " "))
	}
}

func (p *Plan) textSteps(b *strings.Builder) {
	for _, phase := range []Phase{Setup, Run, Teardown} {
		var lines strings.Builder
		table := tabwriter.NewWriter(&lines, 0, 0, 2, ' ', 0)
		hidden := 0
		for i, s := range p.Steps {
			if s.Phase != phase {
				continue
			}
			if further(s.Iteration) {
				hidden++
				if i+1 == len(p.Steps) || p.Steps[i+1].Phase != phase || !further(p.Steps[i+1].Iteration) {
					fmt.Fprintf(table, "  …\t\t%d more steps of further iterations\t\t\t\n", hidden)
					hidden = 0
				}
				continue
			}
			note := partOf(s)
			if s.Lasting != nil {
				note = strings.TrimPrefix(note+"; extended until "+s.Lasting.String(), "; ")
			}
			if s.Simulates != "" {
				note = strings.TrimPrefix(note+"; simulated: "+textio.Line(s.Simulates), "; ")
			}
			fmt.Fprintf(table, "  %d\t+%s\t%s\t%s\t%s\t%s\n", s.ID, unit.FormatDuration(s.Start.Round(time.Second)), s.Name,
				textio.Line(s.Subject), lengthText(s), note)
		}
		_ = table.Flush()
		if lines.Len() == 0 {
			continue
		}
		fmt.Fprintf(b, "\nSteps of %s\n", phase)
		for line := range strings.Lines(lines.String()) {
			fmt.Fprintln(b, strings.TrimRight(line, " \n"))
		}
	}
}

// iterationsShownMax bounds how many iterations of a repetition are shown; JSON has all.
const iterationsShownMax = 3

// further reports whether a step belongs to an iteration that is not shown.
func further(iteration string) bool {
	for part := range strings.SplitSeq(iteration, ".") {
		if n, err := strconv.Atoi(part); err == nil && n > iterationsShownMax {
			return true
		}
	}
	return false
}

// partOf names the step that put a step into the plan.
func partOf(s Step) string {
	if s.Within == "" {
		return ""
	}
	note := "part of " + s.Within
	if s.Branch > 0 {
		note += fmt.Sprintf(", branch %d", s.Branch)
	}
	if s.Iteration != "" {
		note += ", iteration " + s.Iteration
	}
	return note
}

func lengthText(s Step) string {
	if limit, ok := s.Args["wait_secs"].(float64); ok && limit > 0 {
		return "up to " + unit.FormatDuration(time.Duration(limit*float64(time.Second)))
	}
	if s.Longest > s.Duration {
		return unit.FormatDuration(s.Duration) + " to " + unit.FormatDuration(s.Longest)
	}
	if s.Duration == 0 {
		return "short"
	}
	if s.Rough {
		return "about " + unit.FormatDuration(s.Duration)
	}
	return unit.FormatDuration(s.Duration)
}

func (p *Plan) textTail(b *strings.Builder) {
	if len(p.Power) > 0 {
		b.WriteString("\nPower operations\n")
		for _, o := range p.Power {
			fmt.Fprintf(b, "  step %d: power %s %s\n", o.StepID, o.Action, textio.Line(o.Node))
		}
	}
	p.textSources(b)
	p.textWindows(b)
	textList(b, "Cleanup (always runs)", p.Undo)
	textList(b, "Notes", p.Notes)
	if len(p.Warnings) > 0 {
		b.WriteString("\nWarnings\n")
		_ = diag.Render(b, p.Warnings) // writes to a builder do not fail
	}
}

func textList(b *strings.Builder, title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s\n", title)
	for _, line := range lines {
		fmt.Fprintf(b, "  %s\n", textio.Line(line))
	}
}

// windowLinesMax bounds how many windows the text of a plan shows.
const windowLinesMax = 16

// textWindows prints the names that thresholds can use.
func (p *Plan) textWindows(b *strings.Builder) {
	names := p.Windows
	if len(names) <= 1 {
		return
	}
	if more := len(names) - windowLinesMax; more > 0 {
		names = append(slices.Clone(names[:windowLinesMax]), fmt.Sprintf("… and %d more", more))
	}
	textList(b, "Windows for thresholds", names)
}
