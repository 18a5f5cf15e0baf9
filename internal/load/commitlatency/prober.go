package commitlatency

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/load/postgres"
	"github.com/braggdev/bragg/internal/load/program"
	"github.com/braggdev/bragg/internal/unit"
)

// prober runs one operation after another. Only one goroutine uses it.
type prober struct {
	config      *config
	sync, async *postgres.Conn // nil if no operation needs it
	bare        *bare
	row         []byte
}

const (
	insertName = "insert"
	selectName = "select"
)

func openProber(ctx context.Context, c *config, s *postgres.Server) (p *prober, err error) {
	p = &prober{config: c, row: make([]byte, c.rowBytes)}
	random := rand.NewChaCha8([32]byte{})
	_, _ = random.Read(p.row)
	defer func() {
		if err != nil {
			p.close()
			p = nil
		}
	}()
	if p.sync, err = connect(ctx, s); err != nil {
		return p, err
	}
	if slices.Contains(c.operations, opAsync) {
		if p.async, err = connect(ctx, s); err != nil {
			return p, err
		}
		if err = p.async.Set(ctx, postgres.Setting{Name: "synchronous_commit", Value: "off"}); err != nil {
			return p, err
		}
	}
	if slices.Contains(c.operations, opBare) {
		p.bare, err = openBare(barePath(c, s), c.rowBytes)
	}
	return p, err
}

func connect(ctx context.Context, s *postgres.Server) (*postgres.Conn, error) {
	conn, err := s.Connect(ctx)
	if err != nil {
		return nil, err
	}
	for name, statement := range map[string]string{insertName: "INSERT INTO " + table + " (content) VALUES ($1)", selectName: "SELECT 1"} {
		if err := conn.Prepare(ctx, name, statement); err != nil {
			conn.Close()
			return nil, err
		}
	}
	return conn, nil
}

func (p *prober) close() {
	if p == nil {
		return
	}
	p.sync.Close()
	p.async.Close()
	p.bare.close()
}

// run passes on operations until more returns false. Operations that the server refuses are failures; without a connection it ends.
func (p *prober) run(ctx context.Context, operations chan<- program.Operation, axis program.Axis, more func() bool) error {
	for more() {
		for kind, name := range p.config.operations {
			if !more() {
				break
			}
			began := time.Now()
			err := p.one(ctx, name)
			ended := time.Now()
			o := program.Operation{Kind: kind, End: axis.Of(ended), Latency: int64(ended.Sub(began)), Failed: postgres.State(err)}
			if err != nil && (o.Failed == "" || !p.open()) {
				return fmt.Errorf("%s: %w", name, err)
			}
			operations <- o
		}
	}
	return nil
}

func (p *prober) open() bool { return p.sync.Open() && (p.async == nil || p.async.Open()) }

func (p *prober) one(ctx context.Context, name string) error {
	switch name {
	case opCommit:
		return p.sync.Execute(ctx, insertName, p.row)
	case opAsync:
		return p.async.Execute(ctx, insertName, p.row)
	case opRoundTrip:
		return p.sync.Execute(ctx, selectName)
	default:
		return p.bare.write()
	}
}

// bare writes and syncs as a commit does with the WAL: to a file whose blocks exist, the whole pages that the bytes touch.
type bare struct {
	file   *os.File
	page   []byte
	offset int64
	length int64 // of one commit in the WAL
}

const (
	bareBytes = 16 * unit.MiB // as a segment of the WAL
	pageBytes = 8 * unit.KiB
	// recordBytes is what a commit of one row adds to the WAL beside the row: records of the insert and of the commit.
	recordBytes = 130
)

func barePath(c *config, s *postgres.Server) string {
	return s.Room.Path(program.DiskFolder(c.server.LogDisk), "bare")
}

// makeBare makes the file and fills it, so that a sync writes no metadata.
func makeBare(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(make([]byte, bareBytes))
	return errors.Join(err, f.Sync(), f.Close())
}

func openBare(path string, rowBytes int) (*bare, error) {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &diag.Error{Code: "no-database", Exit: diag.ExitData, Message: "the disk has no file for bare writes",
			Hint: "add workload.PrefillRun for this workload before the load"}
	} else if err != nil {
		return nil, err
	}
	return &bare{file: f, page: bytes.Repeat([]byte{1}, int(2*pageBytes)+rowBytesMax), length: int64(rowBytes) + recordBytes}, nil
}

func (b *bare) write() error {
	first := b.offset / pageBytes * pageBytes
	last := (b.offset + b.length + pageBytes - 1) / pageBytes * pageBytes
	if _, err := b.file.WriteAt(b.page[:last-first], first); err != nil {
		return err
	}
	if b.offset += b.length; b.offset+b.length > bareBytes {
		b.offset = 0
	}
	return fdatasync(b.file)
}

func (b *bare) close() {
	if b != nil {
		_ = b.file.Close()
	}
}
