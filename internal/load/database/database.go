// Package database has what servers of databases have in common when a load starts them on disks of its VM, or reaches an endpoint that the
// user names: where their data is, the settings that a scenario may give, a process that runs while a load does, and a client that asks
// it for its counters. It knows no product, and makes no load.
//
//	options ──ReadPlace, ReadSettings──▶ Place, []Setting ──Plan──▶ data and extents of a plan
//	Server: Start ▶ Run, … ▶ Stop
//	Serve: a server for clients on other VMs, as the end of a load that is not measured
//	Ask ──▶ Asker ──Look──▶ answers to one question, again and again
package database

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/extent"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/program"
	"github.com/braggdev/bragg/internal/unit"
)

// Place is where a database is.
type Place struct {
	Endpoint string // "": a server of its own
	Disk     string // device of the data, "" with an endpoint
	LogDisk  string // device of the log that commits wait for; the same as Disk if it was not set
	// FileSystem is made on disks that are block devices.
	FileSystem program.FileSystem
	Split      bool // the clients of the load are on other VMs than its server
	remote     load.Remote
	shared     bool // all VMs have the same endpoint
	keep       bool // the tables of the endpoint stay
	cpus       *load.EndpointCPUs
}

// Options of an endpoint.
const (
	// KeepName keeps the data of an endpoint after the run.
	KeepName    = "keep_data"
	vcpusName   = "endpoint_vcpus"
	threadsName = "endpoint_threads_per_core"
)

// EndpointNames are the options that only endpoints have.
var EndpointNames = []string{KeepName, vcpusName, threadsName}

const (
	vcpusMax = 4096
	// threadsDefault: most managed services count the threads of their processors as vCPUs.
	threadsDefault = 2
	threadsMax     = 8
)

// ordinalMark in the name of an endpoint is replaced by the number of the VM in its group, from 1.
const ordinalMark = "{n}"

// ReadPlace reads the options disk, endpoint, those of program.FileSystemNames, and the one with the disk of the log.
func ReadPlace(o *load.Options, w *load.Workload, logDisk string) Place {
	name := o.Values["endpoint"]
	p := Place{Endpoint: strings.ReplaceAll(name, ordinalMark, strconv.Itoa(w.Ordinal+1)), shared: !strings.Contains(name, ordinalMark),
		Split: !w.Prefill && len(w.Remote.Peers) > 0, remote: w.Remote}
	switch keep := o.Values[KeepName]; keep {
	case "", "false":
	case "true":
		p.keep = true
	default:
		o.Fault(KeepName, KeepName+": %q is not true or false", keep)
	}
	p.readCPUs(o)
	if p.Endpoint != "" {
		if len(w.Remote.Peers) > 0 {
			o.Fault("endpoint", "endpoint: the workload has a server_group, whose VMs run its servers")
		}
		if !program.EndpointName(p.Endpoint) {
			o.Fault("endpoint", "endpoint: %q is not a name of letters, digits, - and _", p.Endpoint)
		}
		for _, name := range append([]string{"disk", logDisk}, program.FileSystemNames...) {
			if _, given := o.Values[name]; given {
				o.Fault(name, "%s: an endpoint has its own disks", name)
			}
		}
		return p
	}
	if p.keep {
		o.Fault(KeepName, KeepName+": the data of a server of its own is removed with its VM")
	}
	p.FileSystem = program.ReadFileSystem(o)
	if w.Remote.Connected() {
		return p // its disks are those of another VM
	}
	if len(w.Devices) == 0 {
		o.Fault("", "the VM group of the server has no data disk, and there is no endpoint")
		return p
	}
	p.Disk = program.ChooseDisk(o, w, "disk", w.Devices[0].Name)
	if p.LogDisk = p.Disk; logDisk != "disk" {
		p.LogDisk = program.ChooseDisk(o, w, logDisk, p.Disk)
	}
	return p
}

// readCPUs reads what the scenario states of the CPUs of an endpoint.
func (p *Place) readCPUs(o *load.Options) {
	_, vcpus := o.Values[vcpusName]
	_, threads := o.Values[threadsName]
	switch {
	case p.Endpoint == "" && (vcpus || threads):
		name := vcpusName
		if !vcpus {
			name = threadsName
		}
		o.Fault(name, "%s: a server of its own has the CPUs of its VM", name)
	case threads && !vcpus:
		o.Fault(threadsName, "%s: says nothing without %s", threadsName, vcpusName)
	case vcpus:
		p.cpus = &load.EndpointCPUs{VCPUs: o.Integer(vcpusName, 1, vcpusMax), Threads: o.Integer(threadsName, threadsDefault, threadsMax), Each: !p.shared}
	}
}

// Setting is a parameter of a server.
type Setting struct{ Name, Value string }

// Value returns the value of a setting, "" for none.
func Value(list []Setting, name string) string {
	if i := slices.IndexFunc(list, func(s Setting) bool { return s.Name == name }); i >= 0 {
		return list[i].Value
	}
	return ""
}

var settingPattern = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,40}$`)

// Settings are the parameters of a kind of server that a scenario may set. None of them runs a command or reads a file.
type Settings struct {
	Names []string
	// Check returns what is wrong with a value, "" if nothing is.
	Check func(name, value string) string
}

// Read takes all options that are not the generator's own for settings.
func (k Settings) Read(o *load.Options, p Place, own []string) (list []Setting) {
	for _, name := range slices.Sorted(maps.Keys(o.Values)) {
		value := o.Values[name]
		switch {
		case slices.Contains(own, name):
		case !slices.Contains(k.Names, name):
			hint := ""
			if near := diag.Nearest(name, slices.Concat(own, k.Names)); near != "" {
				hint = fmt.Sprintf(" (did you mean %q?)", near)
			}
			o.Fault(name, "no option %q%s", name, hint)
		case p.Endpoint != "":
			o.Fault(name, "%s: the server of an endpoint has its own settings", name)
		case !settingPattern.MatchString(value):
			o.Fault(name, "%s: %q is not a value of a setting", name, value)
		default:
			if wrong := k.Check(name, value); wrong != "" {
				o.Fault(name, "%s: %s", name, wrong)
				continue
			}
			list = append(list, Setting{name, value})
		}
	}
	return list
}

// Data is what a load keeps in its database.
type Data struct {
	Text  string // "scale 3424, 50 GiB"
	Bytes int64
	// FullBytes are those without the scale of a rehearsal.
	FullBytes int64
	// Names is what a prefill makes in the database of an endpoint: "table bragg_commits". Who removes it by hand has to know.
	Names string
}

// Log is the log of a server.
type Log struct {
	Name    string // "WAL"
	Bytes   int64
	Setting string // that bounds it
	Scaled  bool   // for a rehearsal
}

// Plan notes in a plan where data and log go and how much they are.
func (p Place) Plan(w *load.Workload, into *load.Plan, d Data, log Log) error {
	if p.Endpoint != "" {
		into.Program.Data = append(into.Program.Data, program.EndpointFacts(p.Endpoint))
		if into.EndpointCPUs = p.cpus; p.cpus != nil {
			into.Notes = append(into.Notes, fmt.Sprintf("the endpoint has %d vCPUs, %d of them on each core, as the scenario states", p.cpus.VCPUs, p.cpus.Threads))
		}
		if p.shared {
			into.Replaces = p.data()
		}
		p.planEnd(w, into, d)
		return nil
	}
	into.BesideServer = !w.Prefill && !p.Split
	switch {
	case p.Split:
		into.Notes = append(into.Notes, "the server and its data are on VMs of the server_group, the clients on those of the vm_group")
	case into.BesideServer:
		into.Notes = append(into.Notes, "the clients run on the VM of the server and share its CPUs")
	}
	into.Program.Data = append(into.Program.Data,
		fmt.Sprintf("%s: %s", p.Disk, d.Text), fmt.Sprintf("%s: %s, about %s", p.LogDisk, log.Name, unit.FormatBytes(log.Bytes)))
	if p.Disk == p.LogDisk {
		into.Extents = []extent.Extent{{Device: p.Disk, Length: d.Bytes + log.Bytes, Writes: true}}
	} else {
		into.Extents = []extent.Extent{{Device: p.Disk, Length: d.Bytes, Writes: true}, {Device: p.LogDisk, Length: log.Bytes, Writes: true}}
	}
	into.LogBytes = log.Bytes
	if log.Scaled {
		into.ScaledFrom = d.FullBytes
	}
	into.BlockBytesMax = max(into.BlockBytesMax, rehearsalBlockBytes)
	p.FileSystem.Plan(into)
	for _, e := range into.Extents {
		if err := program.CheckFits(w, e.Device, e.Length, "the database takes", "use larger disks, less data, or a lower "+log.Setting); err != nil {
			return err
		}
	}
	return nil
}

func (p Place) data() string { return fmt.Sprintf("the data of endpoint %q", p.Endpoint) }

// planEnd notes what becomes of the tables that a prefill makes on an endpoint.
func (p Place) planEnd(w *load.Workload, into *load.Plan, d Data) {
	switch {
	case !w.Prefill:
	case p.keep:
		into.Notes = append(into.Notes, p.data()+" stays there after the run ("+KeepName+")")
	default:
		if into.Removes = p.data(); d.Names != "" {
			into.Removes += " (" + d.Names + ")"
		}
		into.Notes = append(into.Notes, "the end of the run removes "+into.Removes)
	}
}

// rehearsalBlockBytes is the largest "block" of a database in a plan: a rehearsal shrinks a disk to no less than 64 of them, which is enough
// for the smallest database.
const rehearsalBlockBytes = 4 * unit.MiB

// NoDatabase says that a disk does not have what a load needs.
func NoDatabase(format string, args ...any) error {
	return &diag.Error{Code: "no-database", Exit: diag.ExitData, Message: fmt.Sprintf(format, args...), Hint: "add workload.PrefillRun of this workload before the load"}
}
