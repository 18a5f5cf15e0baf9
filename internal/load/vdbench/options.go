package vdbench

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/program"
	"github.com/braggdev/bragg/internal/load/vdbench/own"
	"github.com/braggdev/bragg/internal/load/vdbench/parmfile"
	"github.com/braggdev/bragg/internal/unit"
)

// config is a workload, read.
type config struct {
	file       *parmfile.File
	runs       []run
	files      files              // of a parameter file with file systems, in place of runs
	disk       string             // that these are on
	fileSystem program.FileSystem // of that disk, if it is a block device
	own        *own.File          // of the user's own vdbench, in place of runs
	errorsMax  uint64             // errors that end the load
	shortest   time.Duration      // of the shortest rehearsal
	fitted     bool               // times are those of a rehearsal
}

func (c *config) issues() diag.List {
	if c == nil || c.file == nil {
		return nil
	}
	return c.file.Issues.Sorted()
}

const (
	optionEngine     = "engine"
	optionHost       = "host" // hd of a file with several that this VM is
	optionDisk       = "disk" // that anchors are on
	errorsMaxDefault = 50
)

var optionNames = slices.Concat([]string{optionEngine, optionHost, optionDisk, load.OptionRateScale}, program.FileSystemNames)

// parse reads the parameter file and the options of a workload.
func parse(w *load.Workload) (*config, error) {
	bad := func(message, hint string) (*config, error) {
		return &config{}, &diag.Error{Code: "bad-generator-option", Exit: diag.ExitData, Message: fmt.Sprintf("options of workload %q", w.Name), Err: load.OptionFaults{{Text: message}}, Hint: hint}
	}
	variables := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(w.Options)) {
		variable, is := strings.CutPrefix(name, parmfile.VariablePrefix)
		switch {
		case is && strings.ContainsAny(w.Options[name], "\r\n\x00"):
			return bad(name+": a value is one line", "")
		case is:
			variables[variable] = w.Options[name]
		case !slices.Contains(optionNames, name):
			return bad(fmt.Sprintf("no option %q", name), fmt.Sprintf("it has %s, and %sNAME for each $NAME of the parameter file", strings.Join(optionNames, ", "), parmfile.VariablePrefix))
		}
	}
	if w.Config == "" {
		return bad("there is no parameter file", "name it with config_file")
	}
	engine := w.Options[optionEngine]
	if engine != "" && engine != "native" && engine != Name {
		return bad(fmt.Sprintf("%s: %q is not native or %s", optionEngine, engine, Name), "")
	}
	rates, err := w.RateScale()
	if err != nil {
		return &config{}, err
	}
	c := &config{file: parmfile.Parse(w.ConfigName, w.Config, variables), errorsMax: errorsMaxDefault}
	if err := c.file.Issues.Err(); err != nil {
		return c, err
	}
	place := noPlace
	if hasFiles(c.file) {
		place = c.place
	}
	if err := place(w); err != nil {
		return c, err
	}
	if engine == Name {
		if rates != 1 || w.Options[optionHost] != "" {
			return bad(fmt.Sprintf("%s: %s has no other options than variables and those of its disk", optionEngine, Name), "")
		}
		if len(c.file.Of(parmfile.Run)) == 0 {
			return bad("the parameter file has no rd=", "")
		}
		c.own = own.Read(c.file, w, c.disk, c.fileSystem)
		return c, c.file.Issues.Err()
	}
	b := builder{File: c.file, workload: w, rates: rates, host: w.Options[optionHost]}
	c.errorsMax = uint64(c.file.General.Number("data_errors", errorsMaxDefault))
	if hasFiles(c.file) {
		c.files = b.filesOf()
	} else {
		c.runs = b.runs()
	}
	if err := c.file.Issues.Err(); err != nil {
		return c, err
	}
	if len(c.runs)+len(c.files.runs) == 0 {
		return bad("the parameter file has no rd=", "")
	}
	c.fit(w)
	return c, nil
}

// rehearsedMin is how long each run of a rehearsal takes at least, if it is that long in the file.
const rehearsedMin = 3 * time.Second

// fit shortens the runs of a rehearsal: by its factor, or so that all of them run within the runtime of the load.
func (c *config) fit(w *load.Workload) {
	total := c.takes()
	c.shortest = c.takesAtLeast()
	least, factor := rehearsedMin, w.Scale.Times
	if w.Runtime > 0 && w.Scale.Rehearsed() {
		least, factor = 0, float64(w.Runtime)/float64(max(1, total))
	}
	if c.fitted = factor > 0 && factor < 1; !c.fitted {
		return
	}
	shrink := func(elapsed, warmup, interval, pause *time.Duration) {
		shorter := func(t time.Duration) time.Duration {
			return time.Duration(float64(t) * factor).Round(time.Millisecond)
		}
		*elapsed, *warmup, *pause = max(min(*elapsed, least), shorter(*elapsed)), shorter(*warmup), shorter(*pause)
		*interval = min(*interval, *elapsed/2)
	}
	for i := range c.runs {
		r := &c.runs[i]
		shrink(&r.elapsed, &r.warmup, &r.interval, &r.pause)
	}
	for i := range c.files.runs {
		r := &c.files.runs[i]
		shrink(&r.elapsed, &r.warmup, &r.interval, &r.pause)
	}
}

// takesAtLeast is how long all runs take in the shortest rehearsal.
func (c *config) takesAtLeast() (sum time.Duration) {
	for i := range c.runs {
		sum += min(c.runs[i].elapsed, rehearsedMin)
	}
	for i := range c.files.runs {
		if r := &c.files.runs[i]; !r.format.only {
			sum += min(r.elapsed, rehearsedMin)
		}
	}
	return sum
}

// inRehearsal states the length of a run, where that is not the one in its name.
func (c *config) inRehearsal(elapsed time.Duration) string {
	if !c.fitted {
		return ""
	}
	return fmt.Sprintf("; %s in this rehearsal", unit.FormatDuration(elapsed))
}

// takes is how long all runs take, without what ends them early.
func (c *config) takes() (sum time.Duration) {
	for i := range c.runs {
		sum += c.runs[i].warmup + c.runs[i].elapsed
		if i > 0 {
			sum += c.runs[i].pause
		}
	}
	for i := range c.files.runs {
		if r := &c.files.runs[i]; !r.format.only {
			sum += r.warmup + r.elapsed
			if i > 0 {
				sum += r.pause
			}
		}
	}
	return sum
}
