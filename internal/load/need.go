package load

import (
	"regexp"
	"slices"
	"strings"
)

// ProgramPlan is what a generator that runs other programs would start, and what must be installed for it on the VM.
type ProgramPlan struct {
	Needs []Need `json:"needs"`
	// Commands are complete, in the order in which they run. Folders of the VM are shown by the name of their disk.
	Commands []string `json:"commands"`
	// Data describes what is stored, where, and how much.
	Data []string `json:"data,omitempty"`
}

// Need is a program that a load needs on its VM.
type Need struct {
	Program  string    `json:"program"`
	Oldest   string    `json:"oldest,omitempty"` // version that is at least needed
	Packages []Package `json:"packages,omitempty"`
}

// Families of distributions.
const (
	Debian = "Debian, Ubuntu"
	RedHat = "Fedora, RHEL"
	SUSE   = "SUSE"
)

// Package brings a program on one family of distributions.
type Package struct {
	Family string `json:"family"`
	Name   string `json:"name"`
}

// String is the command that installs it.
func (p Package) String() string {
	command := map[string]string{Debian: "apt-get install ", RedHat: "dnf install ", SUSE: "zypper install "}[p.Family]
	return command + p.Name + " (" + p.Family + ")"
}

// String names the program and its least version.
func (n Need) String() string {
	if n.Oldest == "" {
		return n.Program
	}
	return n.Program + " " + n.Oldest + " or newer"
}

// NeedsText lists needs and, once each, the packages that bring them: one text for each family of distributions.
func (p *ProgramPlan) NeedsText() (programs string, packages []string) {
	var names, families []string
	brings := map[string][]string{}
	for _, n := range p.Needs {
		names = append(names, n.String())
		for _, one := range n.Packages {
			if !slices.Contains(families, one.Family) {
				families = append(families, one.Family)
			}
			if !slices.Contains(brings[one.Family], one.Name) {
				brings[one.Family] = append(brings[one.Family], one.Name)
			}
		}
	}
	for _, family := range families {
		packages = append(packages, family+": "+strings.Join(brings[family], ", "))
	}
	return strings.Join(names, ", "), packages
}

// GuestImage is the command that builds an image of a distribution with all programs that are needed, "" if packages do not bring them.
func (p *ProgramPlan) GuestImage() string {
	var names []string
	for _, n := range p.Needs {
		at := slices.IndexFunc(n.Packages, func(one Package) bool { return one.Family == Debian })
		if at < 0 {
			return ""
		}
		if name := n.Packages[at].Name; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "bragg image build --with " + strings.Join(names, ",")
}

// Output is what a program wrote during a load, for the bundle.
type Output struct {
	Name string `json:"name"` // "pgbench.txt"
	Text string `json:"text"`
}

var outputPattern = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{0,39}$`)

// Valid reports whether its name is safe for a path and its text within the bound.
func (o Output) Valid() bool {
	return outputPattern.MatchString(o.Name) && len(o.Text) <= OutputBytesMax
}

// Bounds of the outputs of one load.
const (
	OutputsMax     = 8
	OutputBytesMax = 128 << 10
)

// Teller is implemented by Instances that run other programs.
type Teller interface {
	// Outputs returns what the programs wrote, at most OutputsMax texts of OutputBytesMax. It is valid after Run.
	Outputs() []Output
}
