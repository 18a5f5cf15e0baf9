package fiojob

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/fio/fiojob/syntax"
)

// Control is the part of a job that defines when it runs, when it ends, and which resources its threads may use. The zero
// value has fio's defaults.
type Control struct {
	StartDelayMax  time.Duration // of startdelay=low-high; Job.StartDelay is the low end
	ExitAll        bool
	ExitAllOnError bool
	ExitWhat       string // "group" (also ""), "stonewall", "all"
	WaitFor        string // name of a job
	SteadyState    SteadyState
	CreateOnly     bool
	FillDevice     bool
	PreRead        bool

	LatencyTarget     time.Duration // 0: none
	LatencyWindow     time.Duration
	LatencyPercentile float64 // 0: 100
	LatencyRun        bool
	LatencyMax        time.Duration // max_latency; 0: none
	RateMin           [3]int64      // bytes per second
	RateIOPSMin       [3]int64
	RateCycle         time.Duration // 0: one second
	RateIgnoreThink   bool

	ThinkTimeSpin   time.Duration
	ThinkTimeIOTime time.Duration
	ThinkTimeIssue  bool // blocks are counted at issue

	FileService FileService
	Flow        int // weight; 0: none
	FlowID      int
	// FlowSleep is how long a job that is ahead of the others waits before it checks again; 0 uses the engine's default.
	FlowSleep time.Duration

	CPU          CPULoad
	CPUs         []int // that the job may run on; nil: all
	CPUsSplit    bool  // each clone runs on one of them
	Nodes        Nodes
	Nice         int
	PrioClass    int // of the kernel: 1 realtime, 2 best effort, 3 idle; 0: not set
	Prio         int // 0 to 7
	FSyncOnClose bool
	EndSyncFS    bool `json:",omitzero"`

	IgnoreErrors [3][]string // names or numbers, for read, write and verify
	ErrorDump    bool
}

// SteadyState defines when a job is steady. The zero value never ends a job.
type SteadyState struct {
	Measure       string // "iops", "bw", "lat"; "" for none
	Slope         bool   // of the regression line through the values, instead of their distance from the mean
	Limit         float64
	Percent       bool // Limit is percent of the mean
	Duration      time.Duration
	RampTime      time.Duration
	CheckInterval time.Duration // 0: one second
}

// String returns the criterion as fio prints it: "iops_slope:0.300000%".
func (s SteadyState) String() string {
	text := s.Measure
	if s.Slope {
		text += "_slope"
	}
	text += ":" + strconv.FormatFloat(s.Limit, 'f', 6, 64)
	if s.Percent {
		text += "%"
	}
	return text
}

// FileService is the order in which a clone uses its files.
type FileService struct {
	Kind      string // "roundrobin" (also ""), "sequential", "random", "zipf", "pareto", "normal"
	Count     int64  // operations on one file before the next; 0: 1
	Parameter float64
}

// setSteadyState reads "iops:0.3%", "bw_slope:10" and similar values. lat was added after fio 3.33.
func setSteadyState(j *Job, a *arg) {
	name, limit, _ := strings.Cut(a.Text, ":")
	name, ok := a.Choice(strings.TrimSpace(name), []string{"iops", "iops_slope", "bw", "bw_slope", "lat", "lat_slope"}, nil)
	if !ok {
		return
	}
	number, percent := strings.CutSuffix(strings.TrimSpace(limit), "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	s := &j.Control.SteadyState
	switch {
	case err == nil && v >= 0 && !math.IsInf(v, 0):
		s.Limit = v
	case err == nil || percent || name == "iops" || name == "iops_slope":
		a.Bad("want a criterion and its limit, such as iops:0.3% or bw_slope:1m")
		return
	case strings.HasPrefix(name, "lat"):
		d, ok := a.Time(number, time.Nanosecond)
		if !ok {
			return
		}
		s.Limit = float64(d)
	default:
		n, ok := a.Number(number, 0, math.MaxInt64)
		if !ok {
			return
		}
		s.Limit = float64(n)
	}
	s.Measure, s.Slope = strings.CutSuffix(name, "_slope")
	s.Percent = percent
	a.Option.Exact = name + ":" + strings.TrimSpace(limit)
}

var fileServiceKinds = []string{"roundrobin", "sequential", "random", "zipf", "pareto", "normal", "gauss"}

// setFileService reads "roundrobin:4", "random", "zipf:1.2".
func setFileService(j *Job, a *arg) {
	name, parameter, has := strings.Cut(a.Text, ":")
	name, ok := a.Choice(strings.TrimSpace(name), fileServiceKinds, map[string]string{"gauss": "normal"})
	if !ok {
		return
	}
	f := FileService{Kind: name}
	a.Option.Exact = a.Text
	switch name {
	case "zipf":
		f.Parameter = 1.1
	case "pareto":
		f.Parameter = 0.2
	case "normal":
		f.Parameter = 50
	}
	if has {
		v, err := strconv.ParseFloat(parameter, 64)
		bad := err != nil || math.IsNaN(v) || math.IsInf(v, 0)
		switch name {
		case "zipf":
			bad = bad || v <= 0 || v == 1
		case "pareto":
			bad = bad || v <= 0 || v >= 1
		case "normal":
			bad = bad || v < 0 || v > 100
		default:
			bad = bad || v < 1 || v > 1<<30
			f.Count, v = int64(v), 0
		}
		if bad {
			a.Bad("want roundrobin:OPERATIONS, random:OPERATIONS, zipf:THETA (not 1), pareto:H between 0 and 1, or normal:PERCENT")
			return
		}
		f.Parameter = v
	}
	if f == (FileService{Kind: "roundrobin"}) || f == (FileService{Kind: "roundrobin", Count: 1}) {
		f = FileService{}
	}
	j.Control.FileService = f
}

const cpusMax = 4096

// setCPUs reads "0-3,8"; as in fio, a colon is the same as a comma.
func setCPUs(j *Job, a *arg) {
	parts := strings.FieldsFunc(a.Text, func(r rune) bool { return r == ',' || r == ':' || r == ' ' })
	cpus, ok := numberRanges(parts, cpusMax)
	if !ok || len(cpus) == 0 {
		a.Bad("want numbers of CPUs, such as 0-3,8")
		return
	}
	j.Control.CPUs = cpus
}

// setCPUMask reads the set of CPUs from the bits of a number.
func setCPUMask(j *Job, a *arg) {
	v, ok := a.Number(a.Seen, 1, math.MaxInt64)
	if !ok {
		return
	}
	j.Control.CPUs = nil
	for cpu := range 63 {
		if v>>cpu&1 == 1 {
			j.Control.CPUs = append(j.Control.CPUs, cpu)
		}
	}
	a.Option.Exact = strconv.FormatInt(v, 10)
}

// setIgnoreError reads "EAGAIN,ENOSPC:122": names or numbers, with commas between errors of reads, writes and verification,
// and colons between errors of the same kind.
func setIgnoreError(j *Job, a *arg) {
	var lists [3][]string
	kinds := strings.Split(a.Text, ",")
	if len(kinds) > len(lists) {
		a.Bad("want at most three lists, for read, write and verify")
		return
	}
	for i, list := range kinds {
		for name := range strings.SplitSeq(list, ":") {
			if name = strings.TrimSpace(name); name == "" {
				continue
			}
			number, err := strconv.Atoi(name)
			if named := name[0] == 'E' && strings.ToUpper(name) == name; !named && (err != nil || number <= 0) {
				a.Bad(fmt.Sprintf("want errors such as EIO or 5, and not %q", name))
				return
			}
			lists[i] = append(lists[i], name)
		}
	}
	j.Control.IgnoreErrors = lists
}

// setPercentile reads latency_percentile; like fio, it uses the first value of a list.
func setPercentile(j *Job, a *arg) {
	first, _, _ := strings.Cut(a.Text, ":")
	v, err := strconv.ParseFloat(first, 64)
	if err != nil || !(v > 0 && v <= 100) {
		a.Bad("want a percentage up to 100, such as 99.9")
		return
	}
	j.Control.LatencyPercentile = v
	a.Option.Exact = strconv.FormatFloat(v, 'f', -1, 64)
}

// millis reads a plain number of milliseconds.
func millis(field func(*Job) *time.Duration, low int64) apply {
	return func(j *Job, a *arg) {
		if v, ok := a.Number(a.Seen, low, math.MaxInt32); ok {
			*field(j) = time.Duration(v) * time.Millisecond
			a.Option.Exact = strconv.FormatInt(v, 10)
		}
	}
}

// setStartDelay reads startdelay; each clone draws its delay from a range.
func setStartDelay(j *Job, a *arg) {
	if low, high, found := strings.Cut(a.Seen, "-"); found {
		from, ok := a.Time(low, time.Second)
		to, alsoOK := a.Time(high, time.Second)
		if !ok || !alsoOK {
			return
		}
		j.StartDelay, j.Control.StartDelayMax = min(from, to), max(from, to)
		// fio does not accept a unit before the minus sign.
		if read, _ := syntax.ExactTime(a.Seen, time.Second); read.Value != from.Microseconds() {
			a.Warn("fio-reads-otherwise", fmt.Sprintf("%s: fio itself reads the first as %v", a.Written(),
				time.Duration(read.Value)*time.Microsecond), fmt.Sprintf("write %s=%d-…, in seconds", a.Option.Key, int64(from.Seconds())))
		}
		return
	}
	j.Control.StartDelayMax = 0
	duration(func(j *Job) *time.Duration { return &j.StartDelay }, time.Second)(j, a)
}

// checkControl finds problems that only several options of Control show together.
func checkControl(j *Job, at func(string) (syntax.Option, bool), blame func(diag.Severity, syntax.Option, string, string, string)) {
	c := &j.Control
	if c.SteadyState.Measure != "" && c.SteadyState.Duration <= 0 {
		o, _ := at("steadystate")
		blame(diag.SeverityWarning, o, "steadystate-without-duration", "steadystate has no effect without steadystate_duration",
			"write the window beside it, such as steadystate_duration=60")
	}
	if c.RateIgnoreThink && j.ThinkTime > 0 && (j.Rate != [3]int64{} || j.RateIOPS != [3]float64{}) {
		o, _ := at("rate_ignore_thinktime")
		blame(diag.SeverityWarning, o, "rate-keeps-thinktime", "rate_ignore_thinktime has no effect: the job keeps its rate, and fio itself does fewer operations by its think time",
			"lower the rate, or remove the option")
	}
	for _, d := range j.Directions() {
		key := ""
		switch {
		case j.RateIOPS[d] > 0 && float64(c.RateIOPSMin[d]) > j.RateIOPS[d]:
			key = "rate_iops_min"
		case j.Rate[d] > 0 && c.RateMin[d] > j.Rate[d]:
			key = "rate_min"
		}
		if key != "" {
			o, _ := at(key)
			blame(diag.SeverityError, o, "rate-below-minimum", key+" is above the rate, so that the job could only fail",
				"fio refuses the job too")
			return
		}
	}
}

// CheckWaits returns the first job that waits for a job that does not precede it, and the problem.
func CheckWaits(jobs []Job) (at int, problem string) {
	for i := range jobs {
		wanted := jobs[i].Control.WaitFor
		if wanted == "" {
			continue
		}
		if wanted == jobs[i].Name {
			return i, fmt.Sprintf("job %q waits for itself", wanted)
		}
		found := false
		for k := range jobs[:i] {
			found = found || jobs[k].Name == wanted
		}
		if !found {
			return i, fmt.Sprintf("wait_for=%s: no job of that name precedes this one", wanted)
		}
	}
	return -1, ""
}
