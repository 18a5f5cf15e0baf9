package vdbench

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/ioengine/program"
	"github.com/braggdev/bragg/internal/load/vdbench/parmfile"
)

// stream translates one workload on one storage definition. Values of loops replace those of the definitions.
func (b *builder) stream(rd, wd, sd *parmfile.Definition, loops map[string]string) (s stream, length int64) {
	b.refuseKeys(wd)
	b.refuseKeys(sd)
	s = stream{name: wd.Name.Text + "-" + sd.Name.Text, device: sd.Text("lun", ""), threads: int(sd.Number("threads", 8)), random: 100, read: 100}
	if v := loops["forthreads"]; v != "" {
		s.threads, _ = strconv.Atoi(v)
	}
	s.sizes = []parmfile.Share{{Bytes: 4096, Percent: 100}}
	if p, has := wd.Get("xfersize"); has {
		if s.sizes = p.Mix(); s.sizes == nil {
			b.no(p.Key, "xfersize=(min,max,align): how the sizes are drawn is not documented")
			s.sizes = []parmfile.Share{{Bytes: 4096, Percent: 100}}
		}
	}
	if v := loops["forxfersize"]; v != "" {
		n, _ := parmfile.ParseSize(v)
		s.sizes = []parmfile.Share{{Bytes: max(1, n), Percent: 100}}
	}
	s.read = b.percent(wd, "rdpct", s.read, loops["forrdpct"])
	b.seek(&s, wd, loops["forseekpct"])
	b.flags(&s, rd, wd, sd)
	b.content(&s, loops["forcompratio"])
	for _, v := range rdDistribution(rd) {
		s.linear = s.linear || strings.ToLower(v.Text)[0] == 'd'
	}
	if s.linear && s.mixed() && strings.ToLower(rd.Text("iorate", "")) != "max" {
		b.no(rd.Word("distribution"), "distribution=deterministic with rdpct=%d: the native engine spaces reads and writes separately", s.read)
	}
	length = b.place(&s, wd, sd)
	return s, length
}

func rdDistribution(rd *parmfile.Definition) []parmfile.Word {
	p, _ := rd.Get("distribution")
	return p.Values
}

func (s *stream) mixed() bool { return s.read > 0 && s.read < 100 }

// percent reads a whole percentage.
func (b *builder) percent(d *parmfile.Definition, key string, fallback int, loop string) int {
	text := d.Text(key, strconv.Itoa(fallback))
	if loop != "" {
		text = loop
	}
	v, _ := strconv.ParseFloat(text, 64)
	if v != math.Trunc(v) {
		b.no(d.Word(key), "%s=%s: the native engine has whole percentages", key, text)
	}
	return int(v)
}

// seek reads the order of places.
func (b *builder) seek(s *stream, wd *parmfile.Definition, loop string) {
	text := strings.ToLower(wd.Text("seekpct", "random"))
	if loop != "" {
		text = strings.ToLower(loop)
	}
	switch text {
	case "random", "rand":
	case "seq", "sequential":
		s.random = 0
	case "eof", "-1":
		s.random, s.toEnd = 0, true
	case "seqnz", "sequentialnz", "poisson":
		b.no(wd.Word("seekpct"), "seekpct=%s: the native engine has random, sequential, eof and percentages", text)
	default:
		s.random = b.percent(wd, "seekpct", 100, loop)
	}
}

// flags reads openflags of the run, or else of the workload, or else of the storage.
func (b *builder) flags(s *stream, rd, wd, sd *parmfile.Definition) {
	for _, d := range []*parmfile.Definition{rd, wd, sd} {
		p, has := d.Get("openflags")
		if !has {
			continue
		}
		for _, v := range p.Values {
			switch strings.ToLower(v.Text) {
			case "o_direct", "directio":
				s.direct = true
			case "o_sync", "o_dsync", "o_rsync":
				s.sync = true // Linux's vdbench opens with O_DSYNC for all of them
			case "fsync":
				s.flush = true
			default:
				b.no(v, "openflags=%s: the native engine has o_direct, directio, o_sync, o_dsync, o_rsync and fsync", v.Text)
			}
		}
		break
	}
	if strings.HasPrefix(s.device, "/dev/") && !s.direct {
		b.no(sd.Word("lun"), "%s without openflags=o_direct, which vdbench requires for devices on Linux", s.device)
	}
}

// content reads what writes hold.
func (b *builder) content(s *stream, loop string) {
	ratio := b.General.Number("compratio", 1)
	if v, err := strconv.ParseFloat(loop, 64); err == nil {
		ratio = v
	}
	s.squeeze = b.reduced("compratio", ratio)
	ratio = b.General.Number("dedupratio", 1)
	if s.repeat = b.reduced("dedupratio", ratio); s.repeat > 0 {
		if unit, _ := b.General.Size("dedupunit"); len(s.sizes) > 1 || unit != s.sizes[0].Bytes {
			b.no(b.General.Word("dedupratio"), "dedupratio with a dedupunit that is not the transfer size: the native engine repeats whole blocks")
		}
	}
}

// reduced is the share in percent that a ratio removes.
func (b *builder) reduced(key string, ratio float64) int {
	if ratio <= 1 {
		return 0
	}
	v := 100 * (1 - 1/ratio)
	if math.Abs(v-math.Round(v)) > 1e-6 {
		b.no(b.General.Word(key), "%s=%g removes %.4g %%, and the native engine has whole percentages: 2, 2.5, 4, 5 and 10 are exact", key, ratio, v)
	}
	return int(math.Round(v))
}

// text is the run as a job file.
func (r *run) text(runtime, warmup time.Duration) string {
	var out strings.Builder
	for i := range r.streams {
		s := &r.streams[i]
		fmt.Fprintf(&out, "[%s]\nfilename=%s\nioengine=io_uring\niodepth=%d\nnorandommap=1\nrefill_buffers=1\n", s.name, s.device, s.threads)
		s.order(&out)
		fmt.Fprintf(&out, "offset=%d\nsize=%d\nruntime=%dus\nrate_process=%s\n", s.place.start, s.place.length, max(1, runtime.Microseconds()), map[bool]string{false: "poisson", true: "linear"}[s.linear])
		for _, o := range []struct {
			on   bool
			text string
		}{
			{!s.toEnd, "time_based=1"}, {warmup > 0, fmt.Sprintf("ramp_time=%dus", warmup.Microseconds())}, {s.direct, "direct=1"},
			{s.sync, "sync=dsync"}, {s.flush, "fsync_on_close=1"}, {s.align > 0, fmt.Sprintf("ba=%d", s.align)},
			{s.squeeze > 0, fmt.Sprintf("buffer_compress_percentage=%d", s.squeeze)}, {s.repeat > 0, fmt.Sprintf("dedupe_percentage=%d", s.repeat)},
			{s.weight > 0 && r.rate == 0, fmt.Sprintf("flow=%d", s.weight)},
		} {
			if o.on {
				fmt.Fprintln(&out, o.text)
			}
		}
		if r.rate > 0 {
			comment := ""
			reads, writes := s.rate(r.rate, fiojob.Read), s.rate(r.rate, fiojob.Write)
			if math.Round(reads) != reads || math.Round(writes) != writes {
				comment = "# " // job files have whole rates only
			}
			fmt.Fprintf(&out, "%srate_iops=%.7g,%.7g\n", comment, reads, writes)
		}
		out.WriteByte('\n')
	}
	return out.String()
}

// order writes direction, order and sizes.
func (s *stream) order(out *strings.Builder) {
	word := "rw"
	if s.read == 100 {
		word = "read"
	} else if s.read == 0 {
		word = "write"
	}
	if s.random > 0 {
		word = "rand" + word
	}
	fmt.Fprintf(out, "rw=%s\n", word)
	if s.mixed() {
		fmt.Fprintf(out, "rwmixread=%d\n", s.read)
	}
	if s.random > 0 && s.random < 100 {
		fmt.Fprintf(out, "percentage_random=%d\n", s.random)
	}
	if len(s.sizes) == 1 {
		fmt.Fprintf(out, "bs=%d\n", s.sizes[0].Bytes)
		return
	}
	var parts []string
	for _, share := range s.sizes {
		parts = append(parts, fmt.Sprintf("%d/%s", share.Bytes, strconv.FormatFloat(share.Percent, 'f', -1, 64)))
	}
	fmt.Fprintf(out, "bssplit=%s\n", strings.Join(parts, ":"))
}

// rate is what one direction of a stream gets of the rate of its run.
func (s *stream) rate(rate float64, d fiojob.Direction) float64 {
	rate *= s.share
	if d == fiojob.Read {
		return rate * float64(s.read) / 100
	}
	return rate * float64(100-s.read) / 100
}

// jobs makes the jobs of a run, with what a job file cannot state.
func (r *run) jobs(w load.Workload, runtime, warmup time.Duration) ([]fiojob.Job, diag.List, error) {
	file, issues, err := program.Read(r.as(w, runtime, warmup))
	if err != nil {
		return nil, issues, err
	}
	jobs := file.Jobs()
	if len(jobs) != len(r.streams) {
		return nil, issues, fmt.Errorf("run %s: %d jobs of %d streams", r.name, len(jobs), len(r.streams))
	}
	for i := range jobs {
		s := &r.streams[i]
		if r.rate > 0 {
			jobs[i].RateIOPS = [3]float64{s.rate(r.rate, fiojob.Read), s.rate(r.rate, fiojob.Write)}
		}
		jobs[i].Places = fiojob.Places{OnePosition: s.mixed() && s.random < 100, OwnAlign: len(s.sizes) > 1 && s.align == 0, NotFirst: s.place.notFirst}
	}
	return jobs, issues, nil
}

// as is the workload with the job file of a run.
func (r *run) as(w load.Workload, runtime, warmup time.Duration) load.Workload {
	w.ConfigName, w.Config, w.Options, w.Runtime = r.name, r.text(runtime, warmup), nil, 0
	return w
}
