package hammerdb_test

import (
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/hammerdb"
	"github.com/braggdev/bragg/internal/load/loadtest"
)

// TestSplit: the users of HammerDB are on another VM than the server, and their orders are counted over the network.
func TestSplit(t *testing.T) {
	for _, server := range []string{"postgresql", "mysql"} {
		t.Run(server, func(t *testing.T) {
			w := prefilled(t, played(t), server)
			w.Options["all_warehouses"] = "true" // with which the played program ends by itself, after 40 orders
			w.Runtime, w.IntervalLength = time.Minute, 200*time.Millisecond
			s := loadtest.Serve(t, hammerdb.Generator{}, w, 1)
			in, err := hammerdb.Generator{}.Prepare(t.Context(), s.Clients[0])
			if err != nil {
				t.Fatal(err)
			}
			var log loadtest.Log
			if err := in.Run(t.Context(), &log); err != nil {
				t.Fatal(err)
			}
			loadtest.CheckOrder(t, s.Clients[0], log.Intervals())
			sum := loadtest.Add(log.Intervals())
			if total := sum.Totals(); total.Operations != 40 {
				t.Errorf("%d orders, want 40", total.Operations)
			}
			for _, o := range append(in.(load.Teller).Outputs(), s.Server.(load.Teller).Outputs()...) {
				if strings.Contains(o.Text, loadtest.Password) {
					t.Errorf("%s has the password", o.Name)
				}
			}
		})
	}
}

// Orders of a database are those of all VMs with clients.
func TestSplitRefusal(t *testing.T) {
	w := workload(t, nil)
	w.Remote = load.Remote{Peers: []load.Peer{{VM: "db-0001", Clients: 2}}}
	if _, err := (hammerdb.Generator{}).Plan(w); err == nil || !strings.Contains(err.Error(), "2 VMs have clients of one server") {
		t.Errorf("two VMs with users: %v", err)
	}
	w.Options = queryOptions("postgresql", nil)
	if _, err := (hammerdb.Generator{}).Plan(w); err != nil {
		t.Errorf("two VMs with queries: %v", err)
	}
}
