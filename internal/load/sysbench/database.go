package sysbench

import (
	"context"
	"fmt"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/load/program"
)

// prepareDatabase starts the server of a load, or reaches the endpoint, and looks for its tables.
func (in *instance) prepareDatabase(ctx context.Context) (err error) {
	d := in.config.database
	if in.server, err = d.place.open(ctx, &in.workload, in.said); err != nil {
		return err
	}
	if in.workload.Prefill && !d.endpoint {
		return nil // it makes the server once it runs
	}
	if err := in.server.Up(ctx); err != nil || in.workload.Prefill {
		return err
	}
	if err := in.checkTables(ctx); err != nil {
		return err
	}
	in.series, err = in.server.series(ctx)
	return err
}

// checkTables makes sure that the server has the tables of the load.
func (in *instance) checkTables(ctx context.Context) error {
	made, err := in.server.Query(ctx, "SELECT made FROM "+madeTable)
	switch {
	case program.Failed(err):
		made = "none"
	case err != nil:
		return err
	case made == in.config.database.made():
		return nil
	}
	return &diag.Error{Code: "no-database", Exit: diag.ExitData, Err: err,
		Message: fmt.Sprintf("want %s, found %s", in.config.database.made(), made),
		Hint:    "add workload.PrefillRun for this workload, or for one with the same disk and size, before the load"}
}

// fillDatabase makes a server with the tables, or the tables on the endpoint.
func (in *instance) fillDatabase(ctx context.Context) error {
	d := in.config.database
	defer in.server.Stop()
	if d.endpoint {
		if _, err := in.server.Query(ctx, "DROP TABLE IF EXISTS "+madeTable); err != nil {
			return err
		}
		if err := in.keep(ctx, in.command("cleanup")); err != nil {
			return in.server.Conceal(err)
		}
		if in.workload.Remove {
			return nil
		}
	} else if err := in.server.Create(ctx); err != nil {
		return err
	}
	alive, cancel := in.server.While(ctx)
	defer cancel()
	if err := in.keep(alive, in.command("prepare")); err != nil {
		return in.server.Explain(err)
	}
	for _, statement := range d.noteMade() {
		if _, err := in.server.Query(ctx, statement); err != nil {
			return in.server.Explain(err)
		}
	}
	return nil
}
