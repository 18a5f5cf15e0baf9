package scenario

import (
	"fmt"

	"github.com/braggdev/bragg/internal/diag"
)

var (
	workloadKeys = []string{"vm_group", "config_file", "iogen_params", "generator", "options", "server_group", "server_pairing"}
	iogenKeys    = []string{"reporting_interval"}
)

func (p *parser) workloads(f fields) {
	for _, e := range p.section(f, "workloads") {
		p.checkName(e.name, "the workload", entryNameMax)
		p.sc.Workloads = append(p.sc.Workloads, p.workload(e))
	}
}

func (p *parser) workload(e entry) Workload {
	f := p.mapping(e.value, e.name, fmt.Sprintf("workload %q", e.name.Text), workloadKeys)
	f.require("vm_group")
	w := Workload{
		Name:       e.name.Text,
		Group:      p.groupRef(f, "vm_group"),
		ConfigFile: f.text("config_file"),
		Generator:  f.text("generator"),
		Pos:        p.pos(e.name),
	}
	if n, ok := f.get("config_file"); ok {
		p.wanted = append(p.wanted, wantedFile{name: w.ConfigFile, at: n, what: f.what})
	} else if w.Generator == "" {
		f.require("config_file") // other generators may need options only
	}
	if n, ok := f.get("iogen_params"); ok {
		params := p.mapping(n, f.key["iogen_params"], "iogen_params of "+f.what, iogenKeys)
		w.ReportingInterval = params.duration("reporting_interval")
	}
	p.options(f, &w)
	if _, ok := f.get("server_group"); ok {
		w.ServerGroup, w.Mesh = p.groupRef(f, "server_group"), f.oneOf("server_pairing", []string{"pairs", "mesh"}) == "mesh"
		if w.ServerGroup == "" {
			w.Group = "" // nothing more can be said of it: it would be taken for one whose VMs run servers
		}
	}
	return w
}

// options reads the extension's free options; the generator interprets them.
func (p *parser) options(f fields, w *Workload) {
	n, ok := f.get("options")
	if !ok {
		return
	}
	o := p.mapping(n, f.key["options"], "options of "+f.what, nil)
	w.Options, w.OptionPos = map[string]string{}, map[string]diag.Position{}
	for _, name := range o.names {
		w.Options[name], w.OptionPos[name] = o.text(name), p.pos(o.key[name])
	}
}

// groupRef reads the name of a VM group and reports one that does not exist.
func (p *parser) groupRef(f fields, key string) string {
	var known []string
	for _, g := range p.sc.Groups {
		known = append(known, g.Name)
	}
	return f.reference(key, "unknown-group", "VM group", known)
}

// workloadRef reads the name of a workload and reports one that does not exist.
func (p *parser) workloadRef(f fields, key string) string {
	var known []string
	for _, w := range p.sc.Workloads {
		known = append(known, w.Name)
	}
	return f.reference(key, "unknown-workload", "workload", known)
}
