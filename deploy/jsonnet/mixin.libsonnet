// Monitoring mixin: the generated rules and dashboards, to render with your other mixins.
// For other thresholds, windows and objectives generate the rules with `ragwatch rules --config FILE`.
// The rules are JSON, because older jsonnet versions cannot parse YAML literal blocks.
{
  _config+:: {
    // Additional labels for your Alertmanager, such as {team: 'search'}.
    labels: {},
  },
  local rules = import 'rules.json',
  local labels = self._config.labels,

  prometheusRules+:: rules['ragwatch-recording.yaml'],

  prometheusAlerts+:: {
    groups: [
      group { rules: [rule { labels+: labels } for rule in group.rules] }
      for group in rules['ragwatch-alerts.yaml'].groups
    ],
  },

  grafanaDashboards+:: {
    'ragwatch-overview.json': import '../../grafana/dashboards/overview.json',
    'ragwatch-retrieval.json': import '../../grafana/dashboards/retrieval.json',
    'ragwatch-generation.json': import '../../grafana/dashboards/generation.json',
    'ragwatch-judges.json': import '../../grafana/dashboards/judges.json',
    'ragwatch-operation.json': import '../../grafana/dashboards/operation.json',
  },
}
