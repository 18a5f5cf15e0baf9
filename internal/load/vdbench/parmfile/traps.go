package parmfile

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/diag"
)

// traps warns of what vdbench runs although its author hardly means it, and reports what it refuses.
func (f *File) traps() {
	for _, sd := range f.Of(Storage) {
		f.lun(sd)
	}
	for _, fsd := range f.Of(FileSystem) {
		if _, has := fsd.Get("anchor"); !has {
			f.fault(fsd.Name, "no-anchor", "fsd="+fsd.Name.Text+" has no anchor", "")
		}
	}
	f.selections(Workload, "sd", Storage)
	f.selections(FileWork, "fsd", FileSystem)
	f.hosts()
	for _, rd := range f.Of(Run) {
		f.run(rd)
	}
}

// selections checks the names in workloads.
func (f *File) selections(kind Kind, key string, of Kind) {
	for _, d := range f.Of(kind) {
		if p, has := d.Get(key); has {
			f.Select(of, p)
		}
	}
}

// localhost is the host of a file without hd=.
const localhost = "localhost"

// hosts checks the hosts that definitions name. Those of a workload on file systems have no wildcards.
func (f *File) hosts() {
	names := []string{localhost}
	for _, hd := range f.Of(Host) {
		names = append(names, hd.Name.Text)
	}
	for _, kind := range hostKinds {
		for _, word := range f.words(kind, "host") {
			prefix, wild := strings.CutSuffix(word.Text, "*")
			fits := func(name string) bool {
				return name == word.Text || wild && kind != FileWork && strings.HasPrefix(name, prefix)
			}
			if !slices.ContainsFunc(names, fits) {
				f.fault(word, "not-defined", fmt.Sprintf("no hd=%s", short(word.Text)), "")
			}
		}
	}
}

// words are the values of a parameter in all definitions of a kind.
func (f *File) words(kind Kind, key string) (all []Word) {
	for _, d := range f.Of(kind) {
		for _, p := range d.Parameters {
			if p.Key.Text == key {
				all = append(all, p.Values...)
			}
		}
	}
	return all
}

// lun checks that a storage definition has one, or one for each of its hosts.
func (f *File) lun(sd *Definition) {
	count := map[string]int{}
	for _, p := range sd.Parameters {
		count[p.Key.Text]++
	}
	switch luns := count["lun"]; {
	case luns == 0:
		f.fault(sd.Name, "no-lun", "sd="+sd.Name.Text+" has no lun", "")
	case luns > 1 && count["host"] != luns:
		f.fault(sd.Word("lun"), "given-twice", fmt.Sprintf("sd=%s has %d luns, and not a host= for each of them", sd.Name.Text, luns), "write one sd for each lun")
	}
}

func (f *File) warn(w Word, code, hint, format string, args ...any) {
	f.At(w, diag.SeverityWarning, code, fmt.Sprintf(format, args...), hint)
}

// run checks one run definition.
func (f *File) run(rd *Definition) {
	for _, kind := range []Kind{Workload, FileWork} {
		p, has := rd.Get(string(kind))
		if !has {
			continue
		}
		chosen := f.Select(kind, p)
		f.skew(rd, chosen)
		for _, wd := range chosen {
			f.sequential(rd, wd)
		}
	}
	if _, named := rd.Get("sd"); named {
		f.sdOfRun(rd)
	}
	f.times(rd)
	if p, has := rd.Get("forxfersize"); has && len(p.Values) > 2 && len(p.Values)%2 == 0 {
		if _, problem := p.mix(); problem == "" {
			f.warn(p.Key, "loop-not-mix", "put the distribution into xfersize of the workload", "a run makes a loop of these sizes, and not a distribution with percentages")
		}
	}
	iorate, rated := rd.Get("iorate")
	_, fwdRated := rd.Get("fwdrate")
	if _, curve := rd.Get("curve"); curve && strings.ToLower(rd.Text("iorate", "")) != "curve" {
		f.warn(rd.Name, "curve-without-effect", "add iorate=curve", "curve= has an effect only with iorate=curve")
	}
	if rated && len(iorate.Values) > 1 {
		for _, v := range iorate.Values {
			if strings.EqualFold(v.Text, "curve") {
				f.fault(v, "bad-value", "iorate: curve stands alone", "")
			}
		}
	}
	if _, replays := rd.Get("replay"); !rated && !fwdRated && !replays && !f.Issues.HasErrors() {
		f.fault(rd.Name, "no-rate", "rd="+rd.Name.Text+" has no iorate or fwdrate", "iorate=max runs as fast as possible")
	}
}

// sdOfRun checks the storage that a run names itself, where names may also be the words that make runs of it.
func (f *File) sdOfRun(rd *Definition) {
	p, _ := rd.Get("sd")
	if t := p.Values[0].Text; t != "single" && t != "range" && !strings.HasPrefix(t, "setsof") {
		f.Select(Storage, p)
	}
}

// skew checks that the shares of a run's workloads sum to 100.
func (f *File) skew(rd *Definition, chosen []*Definition) {
	sum, given := 0.0, 0
	for _, wd := range chosen {
		if v := wd.Number("skew", 0); v > 0 {
			sum, given = sum+v, given+1
		}
	}
	if given == len(chosen) && given > 0 && math.Abs(sum-100) > 1e-6 || sum > 100+1e-6 {
		f.fault(rd.Name, "skew", fmt.Sprintf("the skew of the workloads of rd=%s sums to %g, not to 100", rd.Name.Text, sum), "")
	}
}

// sequential warns of workloads that go through the same places in order.
func (f *File) sequential(rd, wd *Definition) {
	seekpct := strings.ToLower(wd.Text("seekpct", "100"))
	if seekpct != "0" && seekpct != "seq" && seekpct != "sequential" && seekpct != "eof" && seekpct != "-1" {
		return
	}
	if len(f.Of(Host)) > 1 && wd.Kind == Workload {
		f.warn(wd.Word("seekpct"), "same-sequential-region", "give each host a range or an sd of its own",
			"every host of rd=%s reads or writes the same blocks in the same order, so that all but the first find them in caches", rd.Name.Text)
	}
	if p := wd.Number("rdpct", 100); p > 0 && p < 100 && wd.Kind == Workload {
		f.warn(wd.Word("seekpct"), "sequential-mix", "", "reads and writes of wd=%s share one sequence of blocks: neither of both is sequential on its own", wd.Name.Text)
	}
}

// Times that vdbench assumes.
const (
	elapsedDefault  = 30
	intervalMaximum = 60
	curveSecondsMin = 60
)

// times checks the length of runs.
func (f *File) times(rd *Definition) {
	elapsed := rd.Seconds("elapsed", elapsedDefault*1e9).Seconds()
	interval := rd.Seconds("interval", 0).Seconds()
	warmup := rd.Seconds("warmup", 0).Seconds()
	if n := elapsed / interval; interval > 0 && math.Abs(n-math.Round(n)) > 1e-6 {
		f.fault(rd.Word("elapsed"), "elapsed-not-multiple", fmt.Sprintf("elapsed of %g s is not a multiple of the interval of %g s", elapsed, interval), "vdbench refuses it, too")
	}
	if interval > 0 && math.Mod(warmup, interval) > 1e-9 {
		f.fault(rd.Word("warmup"), "warmup-not-multiple", fmt.Sprintf("warmup of %g s is not a multiple of the interval of %g s", warmup, interval), "vdbench refuses it, too")
	}
	if interval == 0 {
		interval = min(elapsed/2, intervalMaximum)
	}
	if elapsed == 0 {
		f.fault(rd.Word("elapsed"), "too-short", "elapsed of 0 s is not a run", "two intervals are the least")
	} else if elapsed < 2*interval {
		f.fault(rd.Word("elapsed"), "too-short", fmt.Sprintf("elapsed of %g s is shorter than two intervals of %g s", elapsed, interval), "the first interval is not in the totals")
	}
	if strings.EqualFold(rd.Text("iorate", ""), "curve") && elapsed < curveSecondsMin {
		f.warn(rd.Word("elapsed"), "short-curve", "elapsed=60 or more", "every point of the curve, and the maximum that all of them depend on, is measured for %g s only", elapsed)
	}
}
