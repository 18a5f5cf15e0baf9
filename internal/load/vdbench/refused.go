package vdbench

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/load/vdbench/parmfile"
)

// refusedKeys are parameters that the native engine does not have, with the reason. The value that changes nothing is accepted.
var refusedKeys = map[parmfile.Kind]map[string][2]string{ // harmless value, reason
	parmfile.General: {
		"abort_failed_skew": {"", "no run is aborted for its skew"}, "concatenatesds": {"no", "it does not make one volume of several"},
		"deduphotsets": {"", "it has no hot sets"}, "dedupflipflop": {"no", "it has no flip-flop"}, "dedupsets": {"", "it has no numbered sets of duplicates"},
		"endcmd": {"", "a load runs no commands; use steps of the scenario"}, "startcmd": {"", "a load runs no commands; use steps of the scenario"},
		"formatsds": {"no", "use workload.PrefillRun"}, "formatxfersize": {"", "use workload.PrefillRun"},
		"include": {"", "the agent reads no other files; put its text into this one"}, "journal": {"", "it keeps no journal; durability is tested by verify jobs"},
		"monitor": {"", "a run is stopped with bragg stop"}, "pattern": {"", "it has no data patterns of vdbench"}, "timeout": {"", "it runs no scripts"},
		"validate": {"no", "vdbench's data validation has a format of its own"},
	},
	parmfile.Host: {"clients": {"1", "use more VMs instead"}, "mount": {"", "a load mounts nothing"}},
	parmfile.Storage: {
		"dedupratio": {"", "it has one ratio, a general parameter"}, "dedupsets": {"", "it has no numbered sets of duplicates"},
		"deduphotsets": {"", "it has no hot sets"}, "dedupflipflop": {"no", "it has no flip-flop"}, "offset": {"0", "places would not be multiples of the transfer size"},
		"replay": {"", "it does not read Swat traces"}, "resetbus": {"", "it resets nothing"}, "resetlun": {"", "it resets nothing"}, "streams": {"", "it has one sequence per workload"},
		"journal": {"", "it keeps no journal"},
	},
	parmfile.Workload: {
		"hotband": {"", "the distribution within the band is not documented"}, "iorate": {"", "a rate beside that of the run needs priorities"},
		"priority": {"", "it has no queues with priorities"}, "rhpct": {"0", "it has no hit area"}, "whpct": {"0", "it has no hit area"},
		"streams": {"", "it has one sequence per workload"}, "stride": {"", "it has no random skips"}, "threads": {"", "it belongs to concatenated storage"},
	},
	parmfile.FileSystem: {
		"dedupratio": {"1", "files are written with data that is not reduced"}, "dedupsets": {"", "files are written with data that is not reduced"},
		"deduphotsets": {"", "files are written with data that is not reduced"}, "dedupflipflop": {"no", "files are written with data that is not reduced"},
		"journal": {"", "it keeps no journal"}, "mask": {"", "names are its own"}, "shared": {"no", "every VM has files of its own"},
		"totalsize": {"", "it writes all files; choose depth, width and files"}, "workingsetsize": {"", "it uses all files; choose depth, width and files"},
		"wss": {"", "it uses all files; choose depth, width and files"},
	},
	parmfile.Run: {
		"foroperations": {"", "write one fwd for each operation"}, "operations": {"", "write one fwd for each operation"},
		"fordepth": {"", "write one fsd for each"}, "forwidth": {"", "write one fsd for each"}, "forfiles": {"", "write one fsd for each"},
		"forsizes": {"", "write one fsd for each"}, "fortotal": {"", "write one fsd for each"},
		"endcmd": {"", "a load runs no commands; use steps of the scenario"}, "startcmd": {"", "a load runs no commands; use steps of the scenario"},
		"forhitarea": {"", "it has no hit area"}, "forhpct": {"0", "it has no hit area"}, "forrhpct": {"0", "it has no hit area"}, "forwhpct": {"0", "it has no hit area"},
		"mount": {"", "a load mounts nothing"}, "replay": {"", "it does not read Swat traces"}, "maxdata_read": {"", "only maxdata is counted"},
		"maxdata_written": {"", "only maxdata is counted"},
	},
}

// refuseKeys reports parameters of a definition that the native engine does not have.
func (b *builder) refuseKeys(d *parmfile.Definition) {
	for _, p := range d.Parameters {
		if why, refused := refusedKeys[d.Kind][p.Key.Text]; refused && (len(p.Values) > 1 || !strings.EqualFold(p.Values[0].Text, why[0])) {
			b.no(p.Key, "the native engine does not have %s of %s: %s", p.Key.Text, d.Kind, why[1])
		}
	}
}

// refuseGeneral checks everything but runs.
func (b *builder) refuseGeneral() {
	b.refuseKeys(&b.General)
	hosts := b.Of(parmfile.Host)
	for i, hd := range hosts {
		b.refuseKeys(hd)
		switch {
		case i == 0 || hasFiles(b.File) && b.host != "":
		case hasFiles(b.File):
			b.At(hd.Name, diag.SeverityError, "not-translated", fmt.Sprintf("a VM is one host of the file, and hd=%s is another one", hd.Name.Text),
				fmt.Sprintf("use one workload for each host, with the option %s: %s or another one", optionHost, hosts[0].Name.Text))
		default:
			b.no(hd.Name, "the native engine runs one host of the file, and hd=%s is another one; every VM of the group runs the whole file", hd.Name.Text)
		}
	}
	for _, rg := range b.Of(parmfile.Replay) {
		b.no(rg.Name, "the native engine does not read Swat traces")
	}
	if b.host != "" && !slices.ContainsFunc(hosts, func(hd *parmfile.Definition) bool { return hd.Name.Text == b.host }) {
		b.Issues.Errorf(diag.Position{File: b.Name}, "no-host", "the option %s is %q, and the file has no such hd", optionHost, b.host)
	}
	if text := b.General.Text("loop", "1"); text != "1" {
		if n, err := strconv.Atoi(text); err != nil || n < 1 || n > runsMax {
			b.no(b.General.Word("loop"), "loop=%s: only a number of repetitions", text)
		}
	}
	if p, has := b.General.Get("data_errors"); has {
		if n, err := strconv.Atoi(p.Values[0].Text); err != nil || n < 1 {
			b.no(p.Key, "data_errors runs a command")
		}
	}
}

// refuseRun checks a run and reports whether it has nothing to translate.
func (b *builder) refuseRun(rd *parmfile.Definition) (done bool) {
	b.refuseKeys(rd)
	if p, has := rd.Get("fwd"); has {
		b.no(p.Key, "rd=%s has an fwd, and the file has no fsd", rd.Name.Text)
		return true
	}
	if _, has := rd.Get("iorate"); !has {
		return true
	}
	if p, has := rd.Get("distribution"); has {
		for _, v := range p.Values {
			if t := strings.ToLower(v.Text); t[0] != 'e' && t[0] != 'd' {
				b.no(v, "distribution=%s: the native engine has exponential and deterministic arrivals", v.Text)
			}
		}
	}
	if p, has := rd.Get("sd"); has {
		if t := p.Values[0].Text; t == "single" || t == "range" || strings.HasPrefix(t, "setsof") {
			b.no(p.Values[0], "sd=%s makes runs of its own; write one rd for each", t)
			return true
		}
	}
	return false
}
