//go:build linux

package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// device is a loop device on a file of our own.
type device struct {
	path string // "/dev/loop3"
	name string // "loop3"
	dir  string
}

// makeDevice makes a file full of random data, so that reads are real reads, and a loop device with direct I/O on it.
func makeDevice(ctx context.Context, parent string, size int64) (*device, error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("make a loop device: needs root")
	}
	for _, program := range []string{"losetup", "fio"} {
		if _, err := exec.LookPath(program); err != nil {
			return nil, fmt.Errorf("%s is not installed", program)
		}
	}
	dir, err := os.MkdirTemp(parent, "benchfio-")
	if err != nil {
		return nil, err
	}
	d := &device{dir: dir}
	file := filepath.Join(dir, "disk")
	err = fillFile(ctx, file, size)
	if err == nil {
		var out []byte
		if out, err = exec.Command("losetup", "--direct-io=on", "--find", "--show", file).Output(); err == nil {
			d.path = strings.TrimSpace(string(out))
			d.name = filepath.Base(d.path)
		} else {
			err = fmt.Errorf("make a loop device: %w", err)
		}
	}
	if err != nil {
		return nil, errors.Join(err, d.remove())
	}
	return d, nil
}

func fillFile(ctx context.Context, path string, size int64) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	block := make([]byte, 1<<20)
	for written := int64(0); written < size && err == nil; written += int64(len(block)) {
		if _, err = rand.Read(block); err == nil {
			_, err = f.Write(block[:min(int64(len(block)), size-written)])
		}
		err = errors.Join(err, ctx.Err())
	}
	return errors.Join(err, f.Sync(), f.Close())
}

func (d *device) remove() error {
	var err error
	if d.path != "" {
		// The kernel may still be releasing it.
		for range 50 {
			if err = exec.Command("losetup", "--detach", d.path).Run(); err == nil {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
	return errors.Join(err, os.RemoveAll(d.dir))
}

// measure notes what the device counted while f ran.
func (d *device) measure(f func() (measured, error)) (measured, error) {
	before, err := d.counted()
	if err != nil {
		return measured{}, err
	}
	m, err := f()
	if err != nil {
		return m, err
	}
	after, err := d.counted()
	m.deviceBytes = after - before
	return m, err
}

// counted returns the bytes that the device has read and written: sectors of 512 bytes in fields 3 and 7 of its stat.
func (d *device) counted() (uint64, error) {
	text, err := os.ReadFile("/sys/block/" + d.name + "/stat")
	if err != nil {
		return 0, err
	}
	var sum uint64
	fields := bytes.Fields(text)
	for _, i := range []int{2, 6} {
		if i >= len(fields) {
			return 0, fmt.Errorf("read counters of %s: %q", d.name, text)
		}
		sectors, err := strconv.ParseUint(string(fields[i]), 10, 64)
		if err != nil {
			return 0, err
		}
		sum += sectors * 512
	}
	return sum, nil
}
