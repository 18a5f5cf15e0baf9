package iojob

import (
	"fmt"
	"os"

	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/fio/iolog"
	"github.com/braggdev/bragg/internal/load"
)

// clone is one clone of a job; fio runs each as a process.
type clone struct {
	job     fiojob.Job // of this clone only: one clone, its own files and offset
	ordinal int        // of the job among all, from 0
	number  int        // over all jobs, from 0
	index   int        // among the clones of its job
	phase   int        // between two stonewalls
	files   []cloneFile
	made    madeFiles  // by preceding jobs
	later   bool       // its files are planned when it begins: a preceding job writes the log that names them
	log     *iolog.Log // to replay; nil: none
	logged  string     // file of the log that it writes; "": none
	course  course
	judge   *judge // nil: does not wait for a steady state
	progress
}

// cloneFile is one file of a clone.
type cloneFile struct {
	path string
	need int64 // minimum length in bytes; 0: use the file as it is
	size int64 // its length after layout
	// drawn: its length was drawn from a range; the clone uses only that much, even if the file is longer.
	drawn bool
	// What the replayed log does to it; without a log, the job decides.
	reads, writes bool
	held          *os.File // a block device that this run holds
}

// devices are the clone's files in the form the engine takes.
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
