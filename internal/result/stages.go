package result

// Stages are the parts that a load goes through by itself, such as the rates of a response time curve.
type Stages struct {
	Workload string `json:"workload"`
	Instance int    `json:"instance"`
	Unit     string `json:"unit"` // of rates: "IOPS"
	// Sentences say at which rate response time leaves its floor, one for each curve.
	Sentences []string `json:"sentences"`
	List      []Stage  `json:"list"` // in the order of time
}

// Stage is one of them, over all VMs, without its beginning where the load leaves that out.
type Stage struct {
	Number  int    `json:"number"` // from 1, as the gauge has it
	Name    string `json:"name"`
	Curve   int    `json:"curve"` // that it is a point of; 0: of none
	Asked   Number `json:"asked"` // operations per second, or percent of the maximum; 0: as many as possible
	VMs     int    `json:"vms"`
	Seconds Number `json:"seconds"` // measured, the mean over its VMs
	Rate    Number `json:"rate"`    // sum over its VMs
	Bytes   Number `json:"bytes_per_second"`
	Mean    Number `json:"mean"` // response time, in nanoseconds
	Median  Number `json:"median"`
	P99     Number `json:"p99"`
	// AtLeast: operations never completed, so that the p99 is a lower bound.
	AtLeast bool `json:"at_least"`
}
