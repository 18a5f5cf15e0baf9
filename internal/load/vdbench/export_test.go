package vdbench

import (
	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/ioengine/program"
)

// Compiled returns the names and jobs of all runs of a file.
func Compiled(w load.Workload) (names []string, all []*program.Program, jobs [][]fiojob.Job, err error) {
	c, err := parse(&w)
	if err != nil {
		return nil, nil, nil, err
	}
	for i := range c.runs {
		r := &c.runs[i]
		p, err := c.compile(Generator{}, &w, r)
		if err != nil {
			return nil, nil, nil, err
		}
		list, _, err := r.jobs(w, r.elapsed, r.warmup)
		if err != nil {
			return nil, nil, nil, err
		}
		names, all, jobs = append(names, r.name), append(all, p), append(jobs, list)
	}
	return names, all, jobs, nil
}
