package builtin

import (
	"context"
	"sync"
	"time"

	"github.com/braggdev/bragg/internal/collect"
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target"
)

// checkTimeout bounds one reading of a check.
const checkTimeout = 20 * time.Second

// Checked is the outcome of reading a source once.
type Checked struct {
	Name     string `json:"name"`
	Kind     string `json:"kind"`
	Interval string `json:"interval"` // between two readings in a run
	Samples  int    `json:"samples"`
	// Age of the newest sample, if the source gives times.
	Age     string   `json:"age,omitempty"`
	Missing []string `json:"missing,omitempty"` // parts that could not be read
	Error   string   `json:"error,omitempty"`   // with a hint
}

// Check reads each source of a target file once, side by side. A source that cannot be read is a warning: runs do without it.
func Check(ctx context.Context, c *target.Config) ([]Checked, diag.List) {
	sources := Sources(c)
	all := make([]Checked, len(sources))
	var work sync.WaitGroup
	for i, s := range sources {
		work.Go(func() { all[i] = check(ctx, c, s) })
	}
	work.Wait()
	problems := diag.List{}
	for _, one := range all {
		if one.Error != "" {
			problems.Warnf(diag.Position{File: c.File}, "source-silent", "%s", one.Error)
		}
	}
	return all, problems
}

func check(ctx context.Context, c *target.Config, s target.Source) Checked {
	out := Checked{Name: s.Name, Kind: s.Kind, Interval: s.Interval.String()}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	collector, err := Open(ctx, c, collect.Options{Source: s, IsVM: func(string) bool { return false }})
	if err != nil {
		out.Error = diag.Sentence(err)
		return out
	}
	defer collector.Close()
	r, err := collector.Collect(ctx)
	if err != nil {
		out.Error = diag.Sentence(err)
		return out
	}
	out.Samples, out.Missing = len(r.Samples), r.Missing
	if age, known := r.Age(time.Now()); known {
		out.Age = age.Round(time.Second).String()
	}
	return out
}
