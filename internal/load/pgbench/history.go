package pgbench

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/braggdev/bragg/internal/load/program"
)

// history counts the rows of pgbench_history. Every committed transaction of the scripts that come with pgbench and write inserts one.
type history struct{ before uint64 }

// openHistory counts the rows before a load. It is nil if rows do not tell the transactions: with own scripts, with those that only read, and if
// others may use the server: an endpoint, or one with clients on several VMs.
func (in *instance) openHistory(ctx context.Context) (*history, error) {
	unknown := func(s script) bool { return s.own || !s.writes }
	if in.config.server.Endpoint != "" || in.config.server.ClientVMs() > 1 || slices.ContainsFunc(in.config.scripts, unknown) {
		return nil, nil
	}
	rows, err := in.historyRows(ctx)
	if err != nil {
		return nil, err
	}
	return &history{before: rows}, nil
}

func (in *instance) historyRows(ctx context.Context) (uint64, error) {
	text, err := in.server.Query(ctx, "SELECT count(*) FROM pgbench_history")
	if err != nil {
		return 0, fmt.Errorf("count the rows of pgbench_history: %w", err)
	}
	return strconv.ParseUint(text, 10, 63)
}

// checkHistory wants the database to have a row for each transaction that was recorded, and no more.
func (in *instance) checkHistory(ctx context.Context, h *history, done uint64) error {
	if h == nil {
		return nil
	}
	after, err := in.historyRows(ctx)
	if err != nil {
		return err
	}
	rows := after - h.before
	fmt.Fprintf(in.said, "pgbench_history has %d rows more than before the load, and %d transactions were recorded\n", rows, done)
	if rows != done {
		e := program.TotalsDiffer("recorded %d transactions, and pgbench_history has %d rows more than before the load", done, rows)
		e.Hint = "transactions were lost, or something else wrote to the table"
		return e
	}
	return nil
}
