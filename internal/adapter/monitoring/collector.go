package monitoring

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/lockstep-dev/lockstep/internal/adapter/ledger"
	"github.com/lockstep-dev/lockstep/internal/adapter/mirror"
)

// Cache holds the watched objects.
type Cache interface {
	// Sizes is the number of sources and of workloads in the cache.
	Sizes() (sources, workloads int)
	Status() []mirror.Sync
}

// Counted is a record that counts its writes.
type Counted interface {
	Status() mirror.Sync
	Writes() ledger.Writes
	// Unwritable returns the parts that cannot be written, with the reason.
	Unwritable() map[string]string
}

// Collector exports cache and record as metrics, read on each scrape.
type Collector struct {
	cache   Cache
	records Counted
	others  []func() []mirror.Sync

	tracked, followed, writes, unwritable *prometheus.Desc
}

// NewCollector makes a collector for the cache, the record unless it is nil, and the resources
// that others watch.
func NewCollector(c Cache, r Counted, others ...func() []mirror.Sync) *Collector {
	return &Collector{
		cache: c, records: r, others: others,
		tracked:    prometheus.NewDesc("lockstep_tracked_objects", "Objects in the cache: sources (ConfigMaps and Secrets) and workloads.", []string{"role"}, nil),
		followed:   prometheus.NewDesc("lockstep_resource_followed", "1 if Lockstep can list and watch the resource, 0 if not (missing permission, outage, not installed).", []string{"resource"}, nil),
		writes:     prometheus.NewDesc("lockstep_state_writes_total", "Writes to the record of delivered versions, by result (success, failure, or conflict with another writer, which Lockstep retries).", []string{"result"}, nil),
		unwritable: prometheus.NewDesc("lockstep_state_unwritable", "1 for each record ConfigMap that cannot be written. The others are left out.", []string{"configmap"}, nil),
	}
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(ch chan<- *prometheus.Desc) {
	ch <- c.tracked
	ch <- c.followed
	ch <- c.writes
	ch <- c.unwritable
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	sources, workloads := c.cache.Sizes()
	ch <- prometheus.MustNewConstMetric(c.tracked, prometheus.GaugeValue, float64(sources), "source")
	ch <- prometheus.MustNewConstMetric(c.tracked, prometheus.GaugeValue, float64(workloads), "workload")
	for resource, value := range c.working() {
		ch <- prometheus.MustNewConstMetric(c.followed, prometheus.GaugeValue, value, resource)
	}
	if c.records == nil {
		return
	}
	for name := range c.records.Unwritable() {
		ch <- prometheus.MustNewConstMetric(c.unwritable, prometheus.GaugeValue, 1, name)
	}
	writes := c.records.Writes()
	ch <- prometheus.MustNewConstMetric(c.writes, prometheus.CounterValue, float64(writes.Succeeded), "success")
	ch <- prometheus.MustNewConstMetric(c.writes, prometheus.CounterValue, float64(writes.Failed), "failure")
	ch <- prometheus.MustNewConstMetric(c.writes, prometheus.CounterValue, float64(writes.Conflicted), "conflict")
}

// working is 1 for each resource that works, 0 for the others. One that is watched twice, such
// as ReplicaSets that a user configures as workloads, works when both do: two series of one name
// would make all metrics unreadable.
func (c *Collector) working() map[string]float64 {
	statuses := c.cache.Status()
	if c.records != nil {
		statuses = append(statuses, c.records.Status())
	}
	for _, other := range c.others {
		statuses = append(statuses, other()...)
	}
	all := map[string]float64{}
	for _, s := range statuses {
		value := 0.0
		if before, twice := all[s.Resource]; s.Works() && (!twice || before == 1) {
			value = 1
		}
		all[s.Resource] = value
	}
	return all
}
