package program

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/fio/fiojob/region"
	"github.com/braggdev/bragg/internal/load"
)

// Options of a Workload.
const (
	OptionBackend      = "backend"         // as Generator.Backend
	optionPrefillDepth = "prefill_iodepth" // queue depth of a prefill
	OptionBacklog      = "backlog"         // what becomes of operations that are late; see ParseBacklog
)

// Read parses the job file and makes of it what the workload asks for: its rehearsal, its runtime, its prefill.
func Read(w load.Workload) (*fiojob.File, diag.List, error) {
	depth, err := prefillDepth(w)
	if err != nil {
		return nil, nil, err
	}
	var names []string
	for _, d := range w.Devices {
		names = append(names, d.Name)
	}
	file, issues := fiojob.Parse(w.ConfigName, w.Config, fiojob.Options{Windows: runtime.GOOS == "windows"})
	issues = append(issues, file.Unsupported()...)
	issues = append(issues, file.Undeclared(names)...)
	if err := issues.Err(); err != nil {
		return nil, issues, err
	}
	size := func(name string) (int64, bool) {
		for _, d := range w.Devices {
			if d.Name == name {
				return d.SizeBytes, d.SizeBytes > 0
			}
		}
		return 0, false
	}
	rates, err := w.RateScale()
	if err != nil {
		return nil, issues, err
	}
	file = region.ScaleRates(region.Scale(region.Resolve(file, size), w.Scale.Factor, w.Scale.BlocksMin), rates)
	switch {
	case w.Prefill && depth > 0:
		file = region.Prefill(file).WithDepth(depth)
	case w.Prefill:
		file = region.Prefill(file)
	default:
		file = file.WithRuntime(w.Runtime).ContinueOnErrors()
	}
	return file, issues, nil
}

// prefillDepth reads the options of a workload, all of them.
func prefillDepth(w load.Workload) (depth int, err error) {
	for key, value := range w.Options {
		bad := &diag.Error{
			Code: "bad-generator-option", Exit: diag.ExitData,
			Message: fmt.Sprintf("option %q of workload %q: the native engine has no such option", key, w.Name),
			Hint:    "it has " + OptionBackend + ", " + OptionBacklog + " and " + load.OptionRateScale,
		}
		switch key {
		case OptionBackend, load.OptionRateScale:
		case OptionBacklog:
			if _, err := ParseBacklog(value); err != nil {
				return 0, err
			}
		case optionPrefillDepth:
			if depth, err = strconv.Atoi(value); err != nil || depth < 1 {
				bad.Message = fmt.Sprintf("option %q of workload %q: want a queue depth, and not %q", key, w.Name, value)
				return 0, bad
			}
		default:
			return 0, bad
		}
	}
	return depth, nil
}

// backlogDropDefault is how late an operation may be before it is dropped, where no bound is given.
const backlogDropDefault = 10 * time.Millisecond

// ParseBacklog reads what becomes of a backlog: "work-off", "drop" or "drop:TIME". 0 works it off.
func ParseBacklog(text string) (dropAfter time.Duration, err error) {
	name, bound, has := strings.Cut(text, ":")
	bad := &diag.Error{
		Code: "backlog", Exit: diag.ExitUsage, Message: fmt.Sprintf("backlog=%s: there is no such policy", text),
		Hint: "work-off, drop, or drop:20ms for operations that are later than that",
	}
	switch {
	case name == "work-off" && !has:
		return 0, nil
	case name == "drop" && !has:
		return backlogDropDefault, nil
	case name == "drop":
		with, err := fiojob.Job{}.With("latency_target", bound) // a time as jobs have them
		if err != nil || with.Control.LatencyTarget <= 0 {
			return 0, bad
		}
		return with.Control.LatencyTarget, nil
	}
	return 0, bad
}

// JobsAlone are those of the job file, whatever runtime the workload is given.
func JobsAlone(w load.Workload) ([]fiojob.Job, error) {
	w.Runtime = 0
	file, _, err := Read(w)
	if err != nil {
		return nil, err
	}
	return file.Jobs(), nil
}
