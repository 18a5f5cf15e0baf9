//go:build !linux

package ioengine

import "time"

// threadClock would read the CPU time of a thread; it is not known here and counts as 0.
type threadClock struct{}

func newThreadClock() threadClock               { return threadClock{} }
func (c *threadClock) nanos() int64             { return 0 }
func (c *threadClock) stop()                    {}
func (c *threadClock) leave()                   {}
func (c *threadClock) arrive(bool)              {}
func (c *threadClock) lap() (cpu, waited int64) { return 0, 0 }
func pause(nanos int64)                         { time.Sleep(time.Duration(nanos)) }
func sharpenTimers()                            {}
func threadID() int                             { return 0 }
