package verify

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

// State records how far the writes of a job had come when it ended, in the file that fio writes for a later verification:
//
//	 0  version 3          8 bytes, little-endian as all of it
//	 8  bytes from 24 on   8
//	16  their CRC-32C     8, without the inversion at the end
//	24  completions below  8
//	32  queue depth        4
//	36  files              4
//	40  writes begun       8
//	48  number of the job  8
//	56  state of fio's random numbers, zeroes where it needs none   56
//	112 name of the job    64
//	176 completions, the latest first: file and offset, 8 each
//
// A write among the last of the queue's depth whose place is not among the completions was in flight.
type State struct {
	Depth, Files uint32
	Writes       uint64
	Index        uint64
	Name         string
	Completed    []FilePlace
	// Random is what fio needs to generate the same random offsets; Bragg's offsets follow from a seed, and a mark is here.
	Random [randomBytes]byte
}

// FilePlace is the place of a write: the file's number in its job, and the offset.
type FilePlace struct{ File, Offset uint64 }

const (
	stateVersion      = 3
	stateHeadBytes    = 24
	stateFixedBytes   = 176 - stateHeadBytes
	statePlaceBytes   = 16
	stateNameBytes    = 64
	randomBytes       = 56
	statePlacesMax    = 1 << 16
	stateDepthMax     = 1 << 16
	stateOurs         = "bragg: operations are those of the seed"
	stateBytesAtLeast = stateHeadBytes + stateFixedBytes
)

// StateBytesMax is the size of the largest file that ReadState accepts.
const StateBytesMax = stateBytesAtLeast + statePlacesMax*statePlaceBytes

// StateName is the name of the file for clone number index, from 0, of all clones.
func StateName(job string, index int) string {
	return fmt.Sprintf("local-%s-%d-verify.state", job, index)
}

// MarkOurs records that Bragg wrote the state, in an order that fio does not know.
func (s *State) MarkOurs() { copy(s.Random[:], stateOurs) }

// Ours reports whether Bragg wrote the state.
func (s *State) Ours() bool { return bytes.HasPrefix(s.Random[:], []byte(stateOurs)) }

// ReadState reads a state file.
func ReadState(data []byte) (*State, error) {
	le := binary.LittleEndian
	if len(data) < stateBytesAtLeast {
		return nil, fmt.Errorf("it has %d bytes, a state has %d at least", len(data), stateBytesAtLeast)
	}
	if version := le.Uint64(data); version != stateVersion {
		return nil, fmt.Errorf("it is of version %d, and only version %d, that of fio 3, is known", version, stateVersion)
	}
	size, check, body := le.Uint64(data[8:]), le.Uint64(data[16:]), data[stateHeadBytes:]
	count := le.Uint64(body)
	switch {
	case size != uint64(len(body)):
		return nil, fmt.Errorf("it says that %d bytes follow, and %d do", size, len(body))
	case uint64(crc32c(body)) != check:
		return nil, fmt.Errorf("it is damaged: its check is %08x, and it says %08x", crc32c(body), check)
	case count > statePlacesMax || uint64(len(body)-stateFixedBytes) != count*statePlaceBytes:
		return nil, fmt.Errorf("it says that it has %d completions, which do not fit its length", count)
	}
	s := &State{Depth: le.Uint32(body[8:]), Files: le.Uint32(body[12:]), Writes: le.Uint64(body[16:]), Index: le.Uint64(body[24:])}
	copy(s.Random[:], body[32:])
	name, _, _ := bytes.Cut(body[32+randomBytes:][:stateNameBytes], []byte{0})
	s.Name = string(name)
	if s.Depth > stateDepthMax {
		return nil, errors.New("its queue depth is out of bounds")
	}
	for at := stateFixedBytes; at < len(body); at += statePlaceBytes {
		s.Completed = append(s.Completed, FilePlace{le.Uint64(body[at:]), le.Uint64(body[at+8:])})
	}
	return s, nil
}

// Bytes returns the content of the file. A name that is too long is truncated.
func (s *State) Bytes() []byte {
	le := binary.LittleEndian
	body := make([]byte, stateFixedBytes, stateFixedBytes+len(s.Completed)*statePlaceBytes)
	le.PutUint64(body, uint64(len(s.Completed)))
	le.PutUint32(body[8:], s.Depth)
	le.PutUint32(body[12:], s.Files)
	le.PutUint64(body[16:], s.Writes)
	le.PutUint64(body[24:], s.Index)
	copy(body[32:], s.Random[:])
	copy(body[32+randomBytes:][:stateNameBytes-1], s.Name)
	for _, c := range s.Completed {
		body = le.AppendUint64(le.AppendUint64(body, c.File), c.Offset)
	}
	head := make([]byte, stateHeadBytes, stateHeadBytes+len(body))
	le.PutUint64(head, stateVersion)
	le.PutUint64(head[8:], uint64(len(body)))
	le.PutUint64(head[16:], uint64(crc32c(body)))
	return append(head, body...)
}
