package vdbench

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/vdbench/parmfile"
)

// run is one run: a run definition with one value of each of its loops and one rate.
type run struct {
	name     string // as vdbench prints it: "RD=rd1; I/O rate: 1000; elapsed=60; For loops: threads=4 iorate=1000"
	short    string // for tables: "rd1 threads=4, 1000/s"
	series   int    // runs of the same number differ in their rates only
	rate     float64
	curve    float64 // percent of the maximum of the run before the points; 0: rate holds
	maximum  bool    // finds the maximum of a curve
	stop     float64 // milliseconds of response time at which the points of a curve end; 0: none
	elapsed  time.Duration
	warmup   time.Duration
	interval time.Duration
	pause    time.Duration // before it
	maxData  float64       // bytes after the warm-up; 0: no bound
	streams  []stream
}

// stream is one workload on one storage definition.
type stream struct {
	name    string
	device  string
	place   place
	read    int // percent
	sizes   []parmfile.Share
	random  int // percent
	toEnd   bool
	threads int
	direct  bool
	sync    bool
	flush   bool // when the file is closed
	align   int64
	share   float64 // of the rate of the run
	weight  int     // in a run without a rate whose workloads have a skew; 0: none
	linear  bool    // operations of a rate are equally spaced
	squeeze int     // percent that compression removes
	repeat  int     // percent that deduplication removes
}

// Bounds of a file: its runs, and the workloads on storage definitions of all runs together.
const (
	runsMax    = 1000
	streamsMax = 100_000
	// rateMax is the highest rate of a run on file systems, that of the native engine for a job: what is due must be countable.
	rateMax = math.MaxInt32
)

// builder makes runs of a file.
type builder struct {
	*parmfile.File
	workload *load.Workload
	rates    float64 // all rates are multiplied by it
	anyDisk  bool    // every lun is a disk
	host     string  // hd of a file with several
	made     int     // streams
	series   int     // of the last run
}

// no refuses what the native engine cannot do exactly.
func (b *builder) no(w parmfile.Word, format string, args ...any) {
	b.At(w, diag.SeverityError, "not-translated", fmt.Sprintf(format, args...), "docs/guides/vdbench.md lists what the native engine runs")
}

// runs expands all run definitions, in order.
func (b *builder) runs() (all []run) {
	b.refuseGeneral()
	for _, rd := range b.Of(parmfile.Run) {
		if b.refuseRun(rd) {
			continue
		}
		loops := loopsOf(rd)
		for _, values := range product(loops) {
			all = append(all, b.rated(rd, values)...)
			if len(all) > runsMax {
				b.no(rd.Name, "more than %d runs", runsMax)
				return nil
			}
			if b.made > streamsMax {
				b.no(rd.Name, "more than %d workloads on storage definitions in all runs", streamsMax)
				return nil
			}
		}
	}
	if n := int(b.General.Number("loop", 1)); n > 1 && len(all) > 0 {
		if len(all) > runsMax/n {
			b.no(b.General.Word("loop"), "loop=%d makes more than %d runs", n, runsMax)
			return nil
		}
		all = slices.Repeat(all, n)
	}
	return all
}

// loopsOf returns the loops of a run in the order of its parameters: the first one is the outermost.
func loopsOf(rd *parmfile.Definition) (loops []parmfile.Parameter) {
	for _, p := range rd.Parameters {
		if strings.HasPrefix(p.Key.Text, "for") && p.Key.Text != "format" {
			loops = append(loops, p)
		}
	}
	return loops
}

// product returns every combination of values, by key.
func product(loops []parmfile.Parameter) []map[string]string {
	all := []map[string]string{{}}
	for _, p := range loops {
		var longer []map[string]string
		for _, before := range all {
			for _, value := range p.Expand() {
				if len(longer) > runsMax {
					return longer
				}
				next := map[string]string{p.Key.Text: value}
				for k, v := range before {
					next[k] = v
				}
				longer = append(longer, next)
			}
		}
		all = longer
	}
	return all
}

var curveDefault = []string{"10", "50", "70", "80", "90", "100"}

// rated makes the runs of one combination of loops, by its rates.
func (b *builder) rated(rd *parmfile.Definition, loops map[string]string) (all []run) {
	base := b.base(rd, loops)
	b.series++
	base.series = b.series
	p, _ := rd.Get("iorate")
	rates := p.Expand()
	add := func(rate, loop string, change func(*run)) {
		next := base
		change(&next)
		next.short = shortName(rd, loops, &next)
		point := ""
		if next.curve > 0 {
			point = fmt.Sprintf("_(%g%%)", next.curve)
		}
		if len(rates) < 2 {
			loop = ""
		}
		next.name = fmt.Sprintf("RD=%s%s; I/O rate: %s; %s; For loops: %s", rd.Name.Text, point, rate, timesOf(rd), forLoops(rd, loops, loop))
		all = append(all, next)
	}
	control := "Uncontrolled"
	if len(base.streams) > 0 && base.streams[0].weight > 0 {
		control = "Controlled"
	}
	for _, text := range rates {
		switch text = strings.ToLower(text); text {
		case "max":
			add(control+" MAX", "iorate=max", func(*run) {})
		case "curve":
			add(control+" curve", "", func(r *run) { r.maximum = true })
			points := curveDefault
			if p, has := rd.Get("curve"); has {
				points = p.Expand()
			}
			for _, point := range points {
				percent, _ := strconv.ParseFloat(point, 64)
				if percent <= 0 {
					b.no(rd.Word("curve"), "curve: a point of %s %%", point)
				}
				add(point+" % of the maximum", "", func(r *run) { r.curve, r.stop = percent, rd.Number("stopcurve", 0) })
			}
		default:
			rate := parmfile.ParseRate(text)
			if rate *= b.rates; rate <= 0 {
				b.no(rd.Word("iorate"), "iorate=%s", text)
			}
			number := strconv.FormatFloat(rate, 'f', -1, 64)
			add(number, "iorate="+number, func(r *run) { r.rate = rate })
		}
	}
	return all
}

// base is what all runs of one combination of loops share.
func (b *builder) base(rd *parmfile.Definition, loops map[string]string) run {
	r := run{elapsed: rd.Seconds("elapsed", 30*time.Second), warmup: rd.Seconds("warmup", 0), pause: rd.Seconds("pause", 0)}
	r.interval = rd.Seconds("interval", min(r.elapsed/2, time.Minute))
	chosen := b.workloads(rd)
	shares := b.shares(rd, chosen)
	taken := map[string]parmfile.Word{}
	var total int64
	for i, wd := range chosen {
		storage := b.storage(rd, wd)
		for _, sd := range storage {
			if b.made++; b.made > streamsMax {
				return r
			}
			lun := sd.Word("lun")
			if other, again := taken[lun.Text]; again {
				b.no(wd.Name, "wd=%s and wd=%s of rd=%s use %s: vdbench lets them share its threads, and the native engine has no threads that two workloads share",
					other.Text, wd.Name.Text, rd.Name.Text, lun.Text)
				continue
			}
			taken[lun.Text] = wd.Name
			s, length := b.stream(rd, wd, sd, loops)
			s.share = shares[i] / float64(len(storage))
			total += length
			r.streams = append(r.streams, s)
		}
	}
	b.weigh(rd, chosen, r.streams)
	if r.maxData = b.maxData(rd); r.maxData > 0 && r.maxData < 100 {
		r.maxData *= float64(total)
	}
	return r
}

// maxData is the bound in bytes, or below 100 in multiples of the storage.
func (b *builder) maxData(rd *parmfile.Definition) float64 {
	n, _ := rd.Size("maxdata")
	return float64(n)
}

// workloads are the workload definitions of a run; one of defaults where it names only storage.
func (b *builder) workloads(rd *parmfile.Definition) []*parmfile.Definition {
	if p, has := rd.Get("wd"); has {
		return b.Select(parmfile.Workload, p)
	}
	return []*parmfile.Definition{{Kind: parmfile.Workload, Name: parmfile.Word{Text: rd.Name.Text, Pos: rd.Name.Pos}, Parameters: b.Defaults[parmfile.Workload]}}
}

// storage are the storage definitions of a workload in a run.
func (b *builder) storage(rd, wd *parmfile.Definition) []*parmfile.Definition {
	for _, d := range []*parmfile.Definition{rd, wd} {
		if p, has := d.Get("sd"); has {
			return b.Select(parmfile.Storage, p)
		}
	}
	b.no(wd.Name, "wd=%s has no sd", wd.Name.Text)
	return nil
}

// shares are those of the workloads in the rate of a run: their skew, and what is left in equal parts.
func (b *builder) shares(rd *parmfile.Definition, chosen []*parmfile.Definition) []float64 {
	left, without := 100.0, 0
	shares := make([]float64, len(chosen))
	for i, wd := range chosen {
		shares[i] = wd.Number("skew", 0)
		if left -= shares[i]; shares[i] == 0 {
			without++
		}
	}
	for i := range shares {
		if shares[i] == 0 {
			shares[i] = left / float64(without)
		}
		if shares[i] /= 100; shares[i] <= 0 {
			b.no(rd.Name, "the skew of other workloads of rd=%s leaves nothing for wd=%s", rd.Name.Text, chosen[i].Name.Text)
		}
	}
	return shares
}

// weightMax is the largest weight that the native engine has.
const weightMax = 1000

// weigh gives the streams of a run without a rate the weights by which the engine keeps their shares, if any workload has a skew.
func (b *builder) weigh(rd *parmfile.Definition, chosen []*parmfile.Definition, streams []stream) {
	if !slices.ContainsFunc(chosen, func(wd *parmfile.Definition) bool { return wd.Number("skew", 0) > 0 }) || len(streams) < 2 {
		return
	}
	for scale := 1.0; scale <= 10*weightMax; scale++ {
		whole := true
		for _, s := range streams {
			w := s.share * scale
			whole = whole && math.Abs(w-math.Round(w)) < 1e-9*scale && w > 0.5 && w < weightMax+0.5
		}
		if whole {
			for i := range streams {
				streams[i].weight = int(math.Round(streams[i].share * scale))
			}
			return
		}
	}
	b.no(rd.Name, "the skew of rd=%s is not a ratio of whole numbers up to %d", rd.Name.Text, weightMax)
}
