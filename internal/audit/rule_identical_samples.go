package audit

import (
	"fmt"

	"github.com/braggdev/bragg/internal/audit/digest"
	"github.com/braggdev/bragg/internal/audit/rule"
	"github.com/braggdev/bragg/internal/finding"
)

// identicalIntervals is how many busy intervals must agree in every count and every latency sum.
const identicalIntervals = 5

var identicalSamples = rule.Rule{
	Code:    "identical-samples",
	Summary: "two series contain identical raw samples",
	Doc: "Latencies in nanoseconds never repeat second by second on two VMs. Series with identical samples were copied or " +
		"recorded twice; one of them is wrong.",
	Example: `The raw samples of OLTP on OLTP-0001 and of OLTP on OLTP-0002 are identical in all 300 busy intervals.`,
	Check:   checkIdenticalSamples,
}

func checkIdenticalSamples(in *rule.Input) []finding.Finding {
	if in.Manifest.Target.Simulated {
		return nil // a simulated load may well repeat itself
	}
	var list []finding.Finding
	first := map[[2]uint64]*digest.Stream{}
	for _, s := range in.Digest.Streams() {
		if s.Busy < identicalIntervals {
			continue
		}
		key := [2]uint64{s.Fingerprint, uint64(s.Busy)}
		other := first[key]
		if other == nil {
			first[key] = s
			continue
		}
		subject := s.Workload
		if other.Workload != subject {
			subject = "" // which of the two is wrong is unknown
		}
		list = append(list, finding.Finding{Severity: finding.Undecided, Subject: subject,
			Claim: fmt.Sprintf("The raw samples of %s on %s and of %s on %s are identical in all %d busy intervals.",
				other.Workload, other.VM, s.Workload, s.VM, s.Busy),
			Advice: "Do not use these numbers. This is a bug in Bragg: report it.",
		})
	}
	return list
}
