// Package builtin lists the generators of load. It is the only package that knows all of them.
package builtin

import (
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/chase"
	"github.com/braggdev/bragg/internal/load/commitlatency"
	"github.com/braggdev/bragg/internal/load/fio"
	"github.com/braggdev/bragg/internal/load/hammerdb"
	"github.com/braggdev/bragg/internal/load/ioengine"
	"github.com/braggdev/bragg/internal/load/iperf3"
	"github.com/braggdev/bragg/internal/load/mlperf"
	"github.com/braggdev/bragg/internal/load/pgbench"
	"github.com/braggdev/bragg/internal/load/redis"
	"github.com/braggdev/bragg/internal/load/stream"
	"github.com/braggdev/bragg/internal/load/sysbench"
	"github.com/braggdev/bragg/internal/load/vdbench"
	"github.com/braggdev/bragg/internal/load/vioperf"
)

// Generators returns all generators, the default first.
func Generators() load.Kinds {
	nowhere := ioengine.Generator{Backend: "null"}
	return load.Kinds{
		{Name: "native", Summary: "the engine of this program: io_uring or psync, open loop, deterministic",
			Generator: ioengine.New(), JobFiles: true, Simulation: nowhere},
		{Name: "fio", Summary: "the fio program, where it is installed: all of its options, closed loop",
			Generator: fio.Generator{}, JobFiles: true, Simulation: nowhere},
		{Name: pgbench.Name, Summary: "PostgreSQL's pgbench, where it is installed, on a server of its own, of another group or an endpoint",
			Generator: pgbench.Generator{}, Simulation: pgbench.Simulation, Servers: load.ServersMay},
		{Name: hammerdb.Name, Summary: "TPROC-C and TPROC-H of HammerDB, where the user has installed it, on a PostgreSQL of its own or an endpoint",
			Generator: hammerdb.Generator{}, Simulation: hammerdb.Simulation, Servers: load.ServersMay},
		{Name: mlperf.Name, Summary: "the storage load of machine learning as MLPerf Storage defines it: readers, simulated accelerators, checkpoints",
			Generator: mlperf.Generator{}, Simulation: mlperf.Simulation{}},
		{Name: redis.Name, Summary: "redis-benchmark, where it is installed, on a Redis server of its own",
			Generator: redis.Generator{}, Simulation: redis.Simulation},
		{Name: stream.Name, Summary: "bandwidth of memory by the definition of STREAM, checked", Generator: stream.Generator{}},
		{Name: sysbench.Name, Summary: "sysbench, where it is installed: CPU, memory, threads, files and databases",
			Generator: sysbench.Generator{}, Simulation: sysbench.Simulation, Servers: load.ServersMay},
		{Name: vdbench.Name, Summary: "parameter files of vdbench, translated, or run by an installed vdbench",
			Generator: vdbench.Generator{}, Simulation: vdbench.Generator{Backend: "null"}},
		{Name: chase.Name, Summary: "latency of caches and memory, by a pointer chase through growing working sets", Generator: chase.Generator{}},
		{Name: vioperf.Name, Summary: "write, rewrite, read and skip read as Vertica's vioperf, in MB/s per core",
			Generator: vioperf.Generator{}, Simulation: vioperf.Simulation},
		{Name: commitlatency.Name, Summary: "the wait of one client for one commit, split into network, database and disk; on PostgreSQL",
			Generator: commitlatency.Generator{}, Simulation: commitlatency.Simulation, Servers: load.ServersMay},
		{Name: iperf3.Name, Summary: "iperf3, where it is installed, between the VMs of two groups",
			Generator: iperf3.Generator{}, Simulation: iperf3.Simulation, Servers: load.ServersMust},
	}
}
