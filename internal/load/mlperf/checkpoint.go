package mlperf

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/program"
	"github.com/braggdev/bragg/internal/unit"
)

// rankBytes is the share of one rank: the whole checkpoint divided by the ranks of the model, however many of them this VM runs.
func (s *checkpointing) rankBytes() int64 {
	return max(1, int64(float64(s.model.bytes())/float64(s.model.ranks)*s.fraction))
}

func (s *checkpointing) bytes() int64 { return s.rankBytes() * int64(s.ranks) }

func (c *config) planCheckpoints(w *load.Workload) (load.Plan, error) {
	s := &c.saving
	all := s.bytes() * int64(s.count)
	p := load.Plan{Engine: c.engine(&w.Remote), BlockBytesMax: chunkBytes, BytesWritten: all, Extents: c.extents(all), Notes: []string{
		fmt.Sprintf("%d checkpoints of %s in %s", s.count, unit.FormatBytes(s.bytes()), c.place)}}
	if err := c.fits(w, p.Extents); err != nil {
		return p, err
	}
	if w.Prefill {
		p.Extents, p.BytesWritten = nil, 0
		return p, nil
	}
	p.Notes = append(p.Notes, fmt.Sprintf("%s: %d ranks write %s each, with fsync; then they are dropped from memory and read back",
		s.model.name, s.ranks, unit.FormatBytes(s.rankBytes())))
	p.Jobs = []load.JobPlan{{Name: s.model.name, Pattern: "files", BlockSizes: unit.FormatBytes(chunkBytes), QueueDepth: s.ranks, DepthAsked: s.ranks, Clones: 1,
		SizeBytes: all, Reads: true, Writes: true, Flushes: true, BlockMin: 1, BlockMax: chunkBytes}}
	p.Notes = append(p.Notes, s.scaled()...)
	return p, nil
}

// scaled states what is smaller than in the benchmark.
func (s *checkpointing) scaled() (notes []string) {
	if s.fraction < 1 {
		notes = append(notes, fmt.Sprintf("checkpoints have %g %% of the size of %s, which is %s", 100*s.fraction, s.model.name, unit.FormatBytes(s.model.bytes())))
	}
	if s.ranks < s.model.ranks {
		notes = append(notes, fmt.Sprintf("%d of the %d ranks write and read", s.ranks, s.model.ranks))
	}
	return notes
}

// saver writes checkpoints and reads them back.
type saver struct {
	*checkpointing
	dir  string
	key  uint64
	out  *record
	axis program.Axis
}

func (s *saver) path(checkpoint, rank int) string {
	return filepath.Join(s.dir, "checkpoints", fmt.Sprintf("%04d", checkpoint), fmt.Sprintf("rank-%04d.bin", rank))
}

// run removes the checkpoints at its end: they have no further use.
func (s *saver) run(ctx context.Context) (err error) {
	defer func() {
		if removing := os.RemoveAll(filepath.Join(s.dir, "checkpoints")); err == nil {
			err = removing
		}
	}()
	values := interval.UnknownGauges(len(checkpointGauges))
	for _, note := range s.scaled() {
		s.out.say("%s\n", note)
	}
	for direction, name := range checkpointOperations {
		sum := 0.0
		for n := range s.count {
			rate, err := s.all(ctx, direction, n)
			if err != nil || ctx.Err() != nil {
				return err
			}
			sum += rate
			values[direction], values[2] = rate/1e6, float64(n+1)
			s.out.set(values)
			s.out.say("%s %d: %s, %.4g MB/s\n", name, n+1, unit.FormatBytes(s.bytes()), rate/1e6)
		}
		s.out.say("%s: mean %.4g MB/s of %d\n", name, sum/float64(s.count)/1e6, s.count)
	}
	return nil
}

// all moves one checkpoint by all ranks at the same time. Its bandwidth is that of the slowest rank, times their number.
func (s *saver) all(ctx context.Context, direction, checkpoint int) (rate float64, err error) {
	if err := os.MkdirAll(filepath.Dir(s.path(checkpoint, 0)), 0o700); err != nil {
		return 0, err
	}
	errs, took := make([]error, s.ranks), make([]int64, s.ranks)
	var all sync.WaitGroup
	began := s.axis.Now()
	for rank := range s.ranks {
		all.Go(func() {
			if direction == opWrite {
				errs[rank] = writeFile(ctx, s.path(checkpoint, rank), s.rankBytes(), load.Key(s.key, uint64(checkpoint*s.ranks+rank)), make([]byte, chunkBytes))
			} else {
				errs[rank] = readFile(ctx, s.path(checkpoint, rank), s.rankBytes())
			}
			if now := s.axis.Now(); errs[rank] == nil {
				took[rank] = now - began
				s.out.add(program.Operation{Kind: direction, End: now, Latency: now - began, Bytes: uint64(s.rankBytes())})
			}
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		if ctx.Err() != nil {
			return 0, nil
		}
		return 0, err
	}
	slowest := int64(1)
	for _, t := range took {
		slowest = max(slowest, t)
	}
	return float64(s.bytes()) / float64(slowest) * 1e9, nil
}

func readFile(ctx context.Context, path string, size int64) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	buffer := make([]byte, chunkBytes)
	read := int64(0)
	for ctx.Err() == nil {
		n, err := f.Read(buffer)
		if read += int64(n); err == io.EOF && read == size {
			return nil
		} else if err != nil {
			return fmt.Errorf("read %s after %d of %d bytes: %w", filepath.Base(path), read, size, err)
		}
	}
	return ctx.Err()
}

// set notes the gauges of a checkpoint load.
func (r *record) set(values interval.GaugeValues) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.values = append(r.values[:0:0], values...)
}
