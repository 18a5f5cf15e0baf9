package vdbench

import (
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/ioengine/pattern"
	"github.com/braggdev/bragg/internal/load/vdbench/parmfile"
	"github.com/braggdev/bragg/internal/load/vdbench/tree"
)

// fileRun is one run on file systems: run definition, value of its loops, rate.
type fileRun struct {
	name     string
	rate     float64
	linear   bool
	keep     bool // the shares of workloads without a rate
	elapsed  time.Duration
	warmup   time.Duration
	interval time.Duration
	pause    time.Duration
	format   format
	trees    []int // indexes of the file's trees that it uses
	works    []fileWork
}

// fileWork is a file workload on one file system.
type fileWork struct {
	tree.Work
	on int // index of its tree
}

// fileSystem is one fsd.
type fileSystem struct {
	name   string
	anchor string
	layout tree.Layout
	full   int // files of each folder before a rehearsal shrank them
}

// format is what a run does before it starts.
type format struct {
	mode tree.Mode
	only bool
}

func (f format) any() bool { return f.mode != tree.Mode{} }

// files are the runs of a parameter file on file systems.
type files struct {
	systems []fileSystem
	runs    []fileRun
	notSet  map[string]bool // parameters whose defaults matter
}

// filesBuilder makes them.
type filesBuilder struct {
	*builder
	files
	index map[string]int // by name of the fsd
}

// hasFiles reports whether a parameter file has file systems.
func hasFiles(f *parmfile.File) bool { return len(f.Of(parmfile.FileSystem)) > 0 }

// filesOf expands all runs of a file.
func (b *builder) filesOf() files {
	f := &filesBuilder{builder: b, index: map[string]int{}}
	f.notSet = map[string]bool{}
	f.refuseGeneral()
	for _, key := range []string{"compratio", "dedupratio"} {
		if b.General.Number(key, 1) > 1 {
			b.no(b.General.Word(key), "%s: files are written with data that neither compression nor deduplication reduces", key)
		}
	}
	for _, sd := range b.Of(parmfile.Storage) {
		b.no(sd.Name, "a file with both sd and fsd; write two")
		return files{}
	}
	anchors := map[string]string{}
	for _, fsd := range b.Of(parmfile.FileSystem) {
		f.system(fsd, anchors)
	}
	for _, rd := range b.Of(parmfile.Run) {
		b.refuseKeys(rd)
		if _, has := rd.Get("fwd"); !has {
			b.no(rd.Name, "rd=%s has no fwd", rd.Name.Text)
			continue
		}
		for _, values := range product(loopsOf(rd)) {
			f.rated(rd, values)
			if len(f.files.runs) > runsMax {
				b.no(rd.Name, "more than %d runs", runsMax)
				return files{}
			}
		}
	}
	if n := int(b.General.Number("loop", 1)); n > 1 && len(f.files.runs) > 0 {
		if len(f.files.runs) > runsMax/n {
			b.no(b.General.Word("loop"), "loop=%d makes more than %d runs", n, runsMax)
			return files{}
		}
		f.files.runs = slices.Repeat(f.files.runs, n)
	}
	return f.files
}

// system translates one fsd.
func (f *filesBuilder) system(fsd *parmfile.Definition, anchors map[string]string) {
	f.refuseKeys(fsd)
	s := fileSystem{name: fsd.Name.Text, anchor: path.Clean("/" + fsd.Text("anchor", ""))}
	if other, again := anchors[s.anchor]; again {
		f.no(fsd.Word("anchor"), "fsd=%s and fsd=%s have the same anchor", other, s.name)
	}
	anchors[s.anchor] = s.name
	l := &s.layout
	*l = tree.Layout{Depth: int(fsd.Number("depth", 1)), Width: int(fsd.Number("width", 1)), Files: int(fsd.Number("files", 1)), All: fsd.Text("distribution", "bottom") == "all"}
	for _, key := range []string{"depth", "width", "files"} {
		if _, has := fsd.Get(key); !has {
			f.no(fsd.Name, "fsd=%s has no %s", s.name, key)
		}
	}
	l.Sizes = f.sizes(fsd, "sizes", nil)
	if len(l.Sizes) == 0 {
		f.no(fsd.Name, "fsd=%s has no sizes that are given or distributed in percent", s.name)
		l.Sizes = []tree.Share{{Bytes: 1, Percent: 100}}
	}
	if w := f.workload; w != nil {
		// Not of one start: a load runs on the tree that its prefill made.
		l.Key = load.KeyOf(load.KeyOf(load.Key(w.Seed, uint64(w.Ordinal)), w.Group), s.anchor)
	}
	if l.Folders() > tree.FoldersMax || l.Count() > tree.FilesMax {
		f.no(fsd.Name, "fsd=%s has more than %d folders or %d files", s.name, tree.FoldersMax, tree.FilesMax)
		l.Depth, l.Files = 1, 1
	}
	s.full = l.Files
	if factor := f.workload.Scale.Factor; factor > 0 && factor < 1 {
		l.Files = max(1, int(float64(l.Files)*factor))
	}
	f.index[s.name] = len(f.systems)
	f.systems = append(f.systems, s)
}

// sizes reads one size or a distribution.
func (f *filesBuilder) sizes(d *parmfile.Definition, key string, fallback []tree.Share) (all []tree.Share) {
	p, has := d.Get(key)
	if !has {
		return fallback
	}
	for _, s := range p.Mix() {
		all = append(all, tree.Share(s))
	}
	if all == nil {
		f.no(p.Key, "%s=(min,max,align): how the sizes are drawn is not documented", key)
		return fallback
	}
	return all
}

// rated makes the runs of one combination of loops, by its rates.
func (f *filesBuilder) rated(rd *parmfile.Definition, loops map[string]string) {
	base := fileRun{elapsed: rd.Seconds("elapsed", 30*time.Second), warmup: rd.Seconds("warmup", 0), pause: rd.Seconds("pause", 0), format: f.formatOf(rd)}
	base.interval = rd.Seconds("interval", min(base.elapsed/2, time.Minute))
	f.works(rd, loops, &base)
	p, has := rd.Get("fwdrate")
	if !has {
		f.no(rd.Name, "rd=%s has no fwdrate", rd.Name.Text)
		return
	}
	rates := p.Expand()
	for _, text := range rates {
		next := base
		switch text = strings.ToLower(text); text {
		case "max":
		case "curve":
			f.no(p.Key, "fwdrate=curve: curves belong to raw workloads; give rates")
		default:
			rate := parmfile.ParseRate(text)
			if next.rate = rate * f.rates; next.rate <= 0 || next.rate > rateMax {
				f.no(p.Key, "fwdrate=%s: want a rate above 0 and at most %d per second", text, rateMax)
			}
			next.keep = false
			text = strconv.FormatFloat(next.rate, 'f', -1, 64)
		}
		next.name = fileRunName(rd, loops, text, len(rates) > 1)
		if f.made += len(next.works); f.made > streamsMax {
			f.no(rd.Name, "more than %d workloads on file systems in all runs", streamsMax)
			return
		}
		f.files.runs = append(f.files.runs, next)
	}
}

// formatOf reads format=.
func (f *filesBuilder) formatOf(rd *parmfile.Definition) (r format) {
	p, has := rd.Get("format")
	if !has {
		return r
	}
	for _, v := range p.Values {
		switch strings.ToLower(v.Text) {
		case "no":
		case "yes":
			r.mode = tree.Mode{Clean: true, Folders: true, Files: true}
		case "restart":
			r.mode.Folders, r.mode.Files = true, true
		case "only":
			r.only = true
			if !r.any() {
				r.mode = tree.Mode{Clean: true, Folders: true, Files: true}
			}
			if slices.ContainsFunc(p.Values, func(v parmfile.Word) bool { return strings.EqualFold(v.Text, "restart") }) {
				r.mode.Clean = false
			}
		case "clean":
			r.mode.Clean = true
		case "directories":
			r.mode = tree.Mode{Clean: true, Folders: true}
		default:
			f.no(v, "format=%s: the native engine has yes, no, only, restart, clean and directories", v.Text)
		}
	}
	return r
}

// works are the workloads of a run on all their file systems.
func (f *filesBuilder) works(rd *parmfile.Definition, loops map[string]string, r *fileRun) {
	p, _ := rd.Get("fwd")
	var chosen []*parmfile.Definition
	for _, fwd := range f.Select(parmfile.FileWork, p) {
		if f.hosted(fwd) {
			chosen = append(chosen, fwd)
		}
	}
	if len(chosen) == 0 {
		f.no(p.Key, "no fwd of rd=%s runs on this host", rd.Name.Text)
		return
	}
	shares := f.shares(rd, chosen)
	for i, fwd := range chosen {
		f.refuseKeys(fwd)
		of, has := fwd.Get("fsd")
		if !has {
			f.no(fwd.Name, "fwd=%s has no fsd", fwd.Name.Text)
			continue
		}
		r.keep = r.keep || fwd.Number("skew", 0) > 0 && len(chosen) > 1
		systems := f.Select(parmfile.FileSystem, of)
		for _, fsd := range systems {
			w := f.work(rd, fwd, fsd, loops)
			w.Share = shares[i] / float64(len(systems))
			w.Key = load.Key(pattern.WorkloadKey(f.workload), uint64(len(f.files.runs)*streamsMax+len(r.works)))
			if !slices.Contains(r.trees, w.on) {
				r.trees = append(r.trees, w.on)
			}
			r.works = append(r.works, w)
		}
	}
	f.linear(rd, r)
}

func (f *filesBuilder) linear(rd *parmfile.Definition, r *fileRun) {
	for _, v := range rdDistribution(rd) {
		switch strings.ToLower(v.Text)[0] {
		case 'e':
		case 'd':
			r.linear = true
		default:
			f.no(v, "distribution=%s: the native engine has exponential and deterministic arrivals", v.Text)
		}
	}
}

// hosted reports whether a workload runs on the host that this VM is.
func (f *filesBuilder) hosted(fwd *parmfile.Definition) bool {
	if f.host == "" {
		return true
	}
	p, has := fwd.Get("host")
	if !has {
		f.no(fwd.Name, "fwd=%s names no host, and the file has several", fwd.Name.Text)
		return false
	}
	return slices.ContainsFunc(f.Select(parmfile.Host, p), func(hd *parmfile.Definition) bool { return hd.Name.Text == f.host })
}

// stopAfterDefault is how many operations of random I/O one open file gets.
const stopAfterDefault = 100

// work translates one workload on one file system.
func (f *filesBuilder) work(rd, fwd, fsd *parmfile.Definition, loops map[string]string) (w fileWork) {
	w.on = f.index[fsd.Name.Text]
	w.Name, w.Threads = fwd.Name.Text+"-"+fsd.Name.Text, int(fwd.Number("threads", 1))
	if n, err := strconv.Atoi(loops["forthreads"]); err == nil {
		w.Threads = n
	}
	if w.Threads > threadsMax {
		f.no(fwd.Word("threads"), "%d threads; at most %d", w.Threads, threadsMax)
		w.Threads = 1
	}
	w.Operation = tree.Operation(strings.ToLower(fwd.Text("operation", "read")))
	if !slices.Contains(tree.Operations, w.Operation) {
		f.no(fwd.Word("operation"), "operation=%s: the native engine has read, write, getattr, setattr, access, create, delete, mkdir and rmdir", w.Operation)
		w.Operation = tree.Read
	}
	if w.Operation == tree.Read {
		w.Reads = 100
	}
	if _, has := fwd.Get("rdpct"); has && w.Operation.Moves() {
		w.Reads = fwd.Number("rdpct", 100)
	}
	w.Sizes = f.sizes(fwd, "xfersize", []tree.Share{{Bytes: 4096, Percent: 100}})
	if n, ok := parmfile.ParseSize(loops["forxfersize"]); ok && n > 0 {
		w.Sizes = []tree.Share{{Bytes: n, Percent: 100}}
	}
	if text := loops["forrdpct"]; text != "" && w.Operation.Moves() {
		w.Reads, _ = strconv.ParseFloat(text, 64)
	}
	f.order(fwd, &w)
	f.access(rd, fwd, fsd, &w)
	return w
}

// Bounds of one workload.
const (
	threadsMax  = 1024
	transferMax = 64 << 20
)

// order reads in which order files and places in them are used.
func (f *filesBuilder) order(fwd *parmfile.Definition, w *fileWork) {
	if p, has := fwd.Get("fileio"); has {
		for _, v := range p.Values {
			switch strings.ToLower(v.Text) {
			case "random":
				w.Random = true
			case "shared":
				w.Shared = true
			case "seq", "sequential":
			default:
				f.no(v, "fileio=%s: files are not deleted before they are written; use operation=delete", v.Text)
			}
		}
	} else if w.Operation.Moves() {
		f.notSet["fileio"] = true
	}
	w.InOrder = true
	if p, has := fwd.Get("fileselect"); has {
		switch text := strings.ToLower(p.Values[0].Text); {
		case len(p.Values) == 1 && text == "random":
			w.InOrder = false
		case len(p.Values) == 1 && (text == "seq" || text == "sequential"):
		default:
			f.no(p.Key, "fileselect=%s: the native engine has random and sequential", text)
		}
	} else {
		f.notSet["fileselect"] = true
	}
	w.StopAfter = stopAfterDefault
	if text := fwd.Text("stopafter", ""); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || !w.Random {
			f.no(fwd.Word("stopafter"), "stopafter=%s: only a number of operations of random I/O", text)
		}
		w.StopAfter = n
	} else if w.Random && w.Operation.Moves() {
		f.notSet["stopafter"] = true
	}
}

// access reads openflags of the run, or else of the workload, or else of the file system.
func (f *filesBuilder) access(rd, fwd, fsd *parmfile.Definition, w *fileWork) {
	for _, d := range []*parmfile.Definition{rd, fwd, fsd} {
		p, has := d.Get("openflags")
		if !has {
			continue
		}
		for _, v := range p.Values {
			switch strings.ToLower(v.Text) {
			case "o_direct", "directio":
				w.Access.Direct = true
			case "o_sync", "o_dsync", "o_rsync":
				w.Access.Sync = true
			case "fsync":
				w.Access.Flush = true
			default:
				f.no(v, "openflags=%s: the native engine has o_direct, directio, o_sync, o_dsync, o_rsync and fsync", v.Text)
			}
		}
		break
	}
	for _, s := range w.Sizes {
		if s.Bytes > transferMax {
			f.no(fwd.Word("xfersize"), "xfersize of more than %d bytes", transferMax)
		}
		if w.Access.Direct && s.Bytes%512 != 0 {
			f.no(fwd.Word("xfersize"), "xfersize=%d is not a multiple of 512, which direct access needs", s.Bytes)
		}
	}
	for _, s := range f.systems[w.on].layout.Sizes {
		if w.Access.Direct && w.Operation.Moves() && s.Bytes%512 != 0 {
			f.no(fsd.Word("sizes"), "sizes of files that are not a multiple of 512, which direct access needs")
			return
		}
	}
}
