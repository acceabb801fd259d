// Package ownership knows the ConfigMaps and Secrets that belong to revisions: it watches
// them and the revisions that use them, and adds owners.
package ownership
