"""What `shmem-mt simulate` leaves beside its points: charts, and what they say."""

from shmem_mt.report import vega
from shmem_mt.report.charts import simulation
from shmem_mt.report.charts.model import Points


def conclude(folder, seed):
    """Results, charts and what they say. The exit status."""
    folder.write_results()
    results = [{**result, "run": folder.directory} for result in folder.results()]
    charts = simulation.charts(Points(results))
    for chart in charts:
        vega.write(chart, folder.directory)
    for line in simulation.findings(Points(results)):
        print(line)
    print(f"seed {seed}; {len(results)} points in {folder.path('results.jsonl')}, {len(charts)} charts beside it")
    invalid = [result for result in results if result["valid"] is False]
    for result in invalid:
        print(f"shmem-mt: {result['params']}: messages were lost or out of order")
    return 1 if invalid else 0
