package audit

import (
	"fmt"
	"slices"

	"github.com/braggdev/bragg/internal/audit/rule"
	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/interval"
)

// shareBand is the share of new orders in all transactions of a healthy TPROC-C.
type shareBand struct {
	meaning     interval.GaugeMeaning
	least, most float64
}

// Published results have .4296 (128,176 of 298,394), .4297 (264,796 of 616,230) and .4304 (306,939 of 713,241); own tests of PostgreSQL and
// MariaDB with few users had .420 to .438. Oracle counts commits that others do not in some versions:
// about a third of its transactions are new orders in older results, .491 (8,043 of 16,365) in one of HammerDB 4. It was not measured here.
var shareBands = []shareBand{{interval.GaugeNewOrderShare, 0.40, 0.47}, {interval.GaugeNewOrderShareOracle, 0.31, 0.52}}

var newOrderShare = rule.Rule{
	Code:    "new-order-share",
	Summary: "TPROC-C had an unusual share of new orders in its transactions",
	Doc: "The mix of TPROC-C is fixed, so that NOPM is about .43 of TPM on PostgreSQL, MySQL and SQL Server, and between a third and a half on Oracle. HammerDB takes TPM from counters of the whole " +
		"server: a low share means that other clients use it or that transactions failed, a high share that transactions were not counted. TPM is wrong " +
		"then, and NOPM may have been slowed by others.",
	Example: `TPC-C had 0.21 new orders per transaction; expected are 0.40 to 0.47.`,
	Check:   checkNewOrderShare,
}

func checkNewOrderShare(in *rule.Input) []finding.Finding {
	var list []finding.Finding
	for _, l := range rule.Measured(in) {
		for _, g := range l.Gauges {
			i := slices.IndexFunc(shareBands, func(b shareBand) bool { return b.meaning == g.Meaning })
			if i < 0 {
				continue
			}
			if share, good := shareBands[i].judge(float64(g.Min), float64(g.Max)); !good {
				list = append(list, finding.Finding{Severity: finding.Warning, Subject: l.Workload, FromNanos: l.FromNanos, ToNanos: l.ToNanos,
					Claim: fmt.Sprintf("%s had %.2f new orders per transaction; expected are %.2f to %.2f.", in.Name(l), share, shareBands[i].least, shareBands[i].most),
					Advice: "Look for other clients of the server and for failed transactions in the output of HammerDB, and repeat the run on a server that " +
						"only the load uses.",
				})
			}
		}
	}
	return list
}

// judge returns the value that is outside, if one is. It looks at both ends, because VMs of one load have a share each, and a mean could
// hide a wrong one. Without a value, which is NaN, nothing is outside.
func (b shareBand) judge(lowest, highest float64) (share float64, good bool) {
	switch {
	case highest > b.most:
		return highest, false
	case lowest < b.least:
		return lowest, false
	}
	return 0, true
}
