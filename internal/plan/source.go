package plan

import (
	"fmt"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/textio"
	"github.com/braggdev/bragg/internal/unit"
)

// Source is one source of counters of the target file.
type Source struct {
	Name     string        `json:"name"`
	Kind     string        `json:"kind"`
	URL      string        `json:"url"`
	Interval time.Duration `json:"interval_ns"`
	TLS      string        `json:"tls,omitempty"` // "unverified" or "none", if the connection is not verified
	Reads    string        `json:"reads"`         // which metrics or objects
	Nodes    string        `json:"nodes"`         // how samples are assigned to nodes; "" if they are not
	VMs      string        `json:"vms"`           // how samples are assigned to VMs; "" if they are not
	// Check is what the source answered when it was read once, for `bragg plan`; plans of bundles have none.
	Check *SourceCheck `json:"check,omitempty"`
}

// SourceCheck is the outcome of reading a source once.
type SourceCheck struct {
	Samples int `json:"samples"`
	Metrics int `json:"metrics"` // different names
	// Age of the newest sample; known only if the source gives times.
	Age      time.Duration `json:"age_ns,omitempty"`
	AgeKnown bool          `json:"age_known,omitempty"`
	Nodes    []string      `json:"nodes,omitempty"`    // names of nodes of the target that have samples
	Unmapped []string      `json:"unmapped,omitempty"` // values of the label for nodes without a node of the target
	Missing  []string      `json:"missing,omitempty"`  // parts that could not be read
	Unused   []string      `json:"unused,omitempty"`   // keys of the target file that match nothing
	Error    string        `json:"error,omitempty"`    // with a hint
}

// namesOfSourceMax bounds how many nodes and values of labels are shown.
const namesOfSourceMax = 5

// Answer describes a check in one line.
func (c *SourceCheck) Answer() string {
	if c.Error != "" {
		return c.Error
	}
	parts := []string{fmt.Sprintf("%s of %s", textio.Plural(c.Samples, "sample"), textio.Plural(c.Metrics, "metric"))}
	switch {
	case c.AgeKnown && c.Age < time.Second:
		parts[0] += ", newest less than 1 s old"
	case c.AgeKnown:
		parts[0] += fmt.Sprintf(", newest %s old", unit.FormatDuration(c.Age.Round(time.Second)))
	}
	if len(c.Nodes) > 0 {
		parts = append(parts, "nodes "+textio.Few(c.Nodes, namesOfSourceMax))
	}
	if len(c.Unmapped) > 0 {
		parts = append(parts, "not nodes of this target: "+textio.Few(c.Unmapped, namesOfSourceMax))
	}
	if len(c.Unused) > 0 {
		parts = append(parts, "no effect: "+textio.Few(c.Unused, namesOfSourceMax))
	}
	if len(c.Missing) > 0 {
		parts = append(parts, "not read: "+strings.Join(c.Missing, "; "))
	}
	return strings.Join(parts, "; ")
}

// textSources prints what else is read during the run.
func (p *Plan) textSources(b *strings.Builder) {
	if len(p.Sources) == 0 {
		return
	}
	b.WriteString("\nSources of counters\n")
	for _, s := range p.Sources {
		tls := ""
		if s.TLS != "" {
			tls = ", TLS " + s.TLS
		}
		fmt.Fprintf(b, "  %s: %s at %s, every %s%s\n", textio.Line(s.Name), s.Kind, textio.Line(s.URL), unit.FormatDuration(s.Interval), tls)
		fmt.Fprintf(b, "    reads %s; nodes: %s; VMs: %s\n", textio.Line(s.Reads), textio.Line(orNone(s.Nodes)), textio.Line(orNone(s.VMs)))
		if s.Check != nil {
			fmt.Fprintf(b, "    now: %s\n", textio.Line(s.Check.Answer()))
		}
	}
}

func orNone(text string) string {
	if text == "" {
		return "not mapped"
	}
	return text
}
