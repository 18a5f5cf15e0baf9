package blockdev

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// edgeBytes is how much of each end must be zeros for a device to count as empty.
const edgeBytes = 1 << 20

// readContent looks for signatures on a device and its partitions. A part that cannot be read is a fault.
func readContent(r io.ReaderAt, size int64, partitions []Partition) (Content, []string) {
	c := Content{}
	var faults []string
	note := func(what string, err error) {
		if err != nil {
			faults = append(faults, fmt.Sprintf("%s cannot be read: %v", what, err))
		}
	}
	edge := min(edgeBytes, size)
	var err error
	c.HeadZero, err = isZero(r, 0, edge)
	note("its beginning", err)
	c.TailZero, err = isZero(r, size-edge, edge)
	note("its end", err)
	if len(faults) > 0 {
		return c, faults
	}
	c.Signatures, err = signatures(r, size)
	note("what lies on it", err)
	if size >= claimSizeMin {
		c.Claim, err = readTag(r, size)
		note("the claim tag", err)
	}
	for _, p := range partitions {
		if p.StartBytes < 0 || p.SizeBytes < 0 || p.SizeBytes > size-p.StartBytes {
			// The table is from a larger disk, or the disk has shrunk.
			faults = append(faults, fmt.Sprintf("partition %s reaches behind its end", p.Name))
			continue
		}
		found, err := signatures(io.NewSectionReader(r, p.StartBytes, p.SizeBytes), p.SizeBytes)
		note("partition "+p.Name, err)
		if err == nil && len(found) == 0 {
			empty, err := isZero(r, p.StartBytes, min(edgeBytes, p.SizeBytes))
			note("partition "+p.Name, err)
			if !empty {
				found = []Signature{{Name: Data}}
			}
		}
		for _, sig := range found {
			sig.Where = p.Name
			c.Signatures = append(c.Signatures, sig)
		}
	}
	return c, faults
}

func isZero(r io.ReaderAt, offset, length int64) (bool, error) {
	buffer := make([]byte, length)
	if err := readFull(r, buffer, offset); err != nil {
		return false, err
	}
	return len(bytes.TrimLeft(buffer, "\x00")) == 0, nil
}

// readFull fills a buffer. A premature end is an error: the caller reads only within the size.
func readFull(r io.ReaderAt, buffer []byte, offset int64) error {
	n, err := r.ReadAt(buffer, offset)
	if n == len(buffer) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return err
}
