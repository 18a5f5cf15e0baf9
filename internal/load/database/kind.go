package database

import (
	"context"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load/program"
)

// Product is a server of one product, for generators that test several.
type Product interface {
	Process
	Query(ctx context.Context, statement string) (string, error)
	Complete(c program.Command) program.Command
	Describe(e *interval.Engine)
	// Conceal replaces settings of an endpoint in an error.
	Conceal(err error) error
}

// Process is a server that starts and stops: Create makes its data, Up starts it.
type Process interface {
	Listener
	Create(ctx context.Context) error
	Up(ctx context.Context) error
	Stop()
}

// Series is what a server says of itself while a load runs.
type Series interface {
	Begin() interval.GaugeValues
	Look(period time.Duration) (values interval.GaugeValues, fresh bool)
	Close()
}
