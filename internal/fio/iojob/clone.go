package iojob

import (
	"fmt"
	"os"

	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/fio/iolog"
	"github.com/braggdev/bragg/internal/load"
)

// clone is one clone of a job: what fio runs as one process.
type clone struct {
	job     fiojob.Job // of this clone alone: one clone, its own files and offset
	ordinal int        // of the job among all, from 0
	number  int        // over all jobs, from 0
	index   int        // among the clones of its job
	phase   int        // between two stonewalls
	files   []cloneFile
	made    madeFiles  // by jobs above
	later   bool       // its files are worked out when it begins: a job above writes the log that names them
	log     *iolog.Log // that is replayed; nil: none
	logged  string     // file of the log that is written; "": none
	course  course
	judge   *judge // nil: no steady state is waited for
	progress
}

// cloneFile is one file of a clone.
type cloneFile struct {
	path string
	need int64 // bytes that it must have; 0 takes it as it is
	size int64 // what it has, once it is laid out
	// drawn: its length was drawn from a range, and it is used up to there also where it is longer.
	drawn bool
	// What a log that is replayed does to it; without one the job tells.
	reads, writes bool
	held          *os.File // a block device that this run holds
}

// devices are the clone's files as the engine wants them.
func (c *clone) devices() []load.Device {
	out := make([]load.Device, len(c.files))
	for i, f := range c.files {
		out[i] = load.Device{Name: f.path, Path: f.path, SizeBytes: f.size}
		if f.held != nil {
			// By its descriptor: the name may refer to another device by now.
			out[i].Path, out[i].Held = fmt.Sprintf("/proc/self/fd/%d", f.held.Fd()), true
		}
	}
	return out
}
